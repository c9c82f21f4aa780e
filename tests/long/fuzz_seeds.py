"""Small contents of the formats that have no text among the samples."""

from __future__ import annotations

import importlib.util
import json

import test_alibaba
import test_decima
import test_estee
import test_psplib
import test_starpu

from stretto.core.trace import Trace
from stretto.files.traces.parquet import FORMAT as PARQUET

_JOBCOMP = (
    "JobId=5 UserId=ada(1000) GroupId=staff(50) Name=fold 7 JobState=COMPLETED Partition=all TimeLimit=60 "
    "StartTime=2026-01-02T00:01:00 EndTime=2026-01-02T00:11:00 NodeList=n[1-2] NodeCnt=2 ProcCnt=8 "
    "WorkDir=/home/two words ReservationName= Tres=cpu=8,mem=4G,node=2,billing=8,gres/gpu=2 "
    "Account= QOS=normal WcKey= Cluster=c "
    "SubmitTime=2026-01-02T00:00:00 EligibleTime=2026-01-02T00:00:00 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def graphs() -> list[bytes]:
    """Return contents of graph formats."""
    jobs = test_alibaba.document([test_alibaba.task(name) for name in ("R3_1_2", "M1", "M2", "MergeTask")])
    found = [test_psplib.SMALL.encode(), test_starpu.SMALL.encode(), json.dumps(test_decima.small()).encode()]
    if importlib.util.find_spec("onnx") is not None:
        import test_onnx

        found.append(test_onnx.convolution().data)
    return [*found, jobs.data, test_estee.document(test_estee.TASKS).data]


def traces() -> list[bytes]:
    """Return contents of trace formats."""
    found = [(_JOBCOMP * 2).encode()]
    if importlib.util.find_spec("pyarrow") is not None:
        found.append(PARQUET.write(Trace.of([0, 1, 2], [3, 4, 5], [1, 2, 1])))
    return found
