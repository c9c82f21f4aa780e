"use strict";
// The page of one Gantt chart: it fills the window, and has the keyboard from the start.
(async function () {
  const data = await Stretto.data(),
    holder = document.getElementById("gantt");
  Stretto.gantt(holder, data, {
    label: `Gantt chart: ${data.task.length.toLocaleString("en")} tasks in ${data.rows.length} rows`,
    isAlone: true,
  });
  holder.querySelector("canvas").focus();
  document.body.dataset.ready = "true";
})();
