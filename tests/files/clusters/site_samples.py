"""Small sites as text, in each format; all made here."""

from __future__ import annotations

from stretto.core.site import Site
from stretto.files.clusters.load_site import read_site
from stretto.files.document import Document

SITE_TOML = """\
name = "hades"

[priority]
age = 1000
fair_share = 10000
max_age = "14d"
favors_small = true

[scheduler]
bf_interval = "1min"
bf_window = "2-00:00:00"
bf_continue = true

[[node]]
name = "c[001-016]"
cpus = 64
memory = "256GB"
features = ["ib", "avx"]
power_w = 700.0
idle_power_w = 120

[[node]]
name = "g[1-2]"
cpus = 128
memory = "1024GiB"
gpus = { a100 = 4, t4 = 1 }
weight = 100
price_usd_per_hour = 3.5

[[node]]
name = "login"
cpus = 8
gpus = 1

[[partition]]
name = "short"
nodes = "c[001-008]"
priority_tier = 10
max_time = "4h"
default_time = "1h"
default = true

[[partition]]
name = "gpu"
nodes = ["g1", "g2"]
max_nodes = 2
exclusive = true

[[partition]]
name = "all"

[[reservation]]
name = "maintenance"
start = "2026-01-10T08:00:00"
end = 2026-01-10T20:00:00Z
nodes = "c[001-002]"

[[reservation]]
name = "outage"
start = "36h"
end = 140000

[[qos]]
name = "high"
priority = 100
max_time = "1d"
max_jobs_per_user = 20

[[account]]
name = "root"

[[account]]
name = "physics"
parent = "root"
shares = 10
"""

SLURM_CONF = """\
# A cluster
ClusterName=hades
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=2880,bf_resolution=300,bf_max_job_test=1000,bf_continue,\\
default_queue_depth=200,sched_interval=30,defer
PriorityType=priority/multifactor
PriorityWeightAge=1000   # after a comment
PriorityWeightFairshare=10000
PriorityWeightTRES=CPU=1000
PriorityMaxAge=14-0
PriorityDecayHalfLife=0
PriorityFavorSmall=YES
Include /etc/slurm/more.conf
NodeName=DEFAULT Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=256000 State=UNKNOWN
NodeName=c[001-100,205] Feature=ib,avx
NodeName=gpu[1-2]-[a,b] \\
    CPUs=128 Gres=gpu:a100:4,gpu:t4:1,nvme:2 Weight=100
nodename=old State=DRAINED CPUs=8
NodeName=later[1-5] State=FUTURE
NodeSet=fast Feature=ib
PartitionName=DEFAULT MaxTime=1-00:00:00 State=UP
PartitionName=short Nodes=c[001-010] Default=YES MaxTime=4:00:00 DefaultTime=60 PriorityTier=10 PriorityJobFactor=5
PartitionName=gpu Nodes=gpu[1-2]-[a,b] OverSubscribe=EXCLUSIVE MaxNodes=4 AllowAccounts=physics
PartitionName=fast Nodes=fast MaxTime=INFINITE State=DRAIN
PartitionName=all Nodes=ALL MaxTime=UNLIMITED
"""

SCONTROL = """\
NodeName=c001 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUEfctv=62 CPUTot=64 CPULoad=0.00
   AvailableFeatures=ib,avx
   ActiveFeatures=ib
   Gres=(null)
   OS=Linux 5.14.0-70.el9.x86_64 #1 SMP Thu
   RealMemory=256000 AllocMem=0 FreeMem=100 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=short
   CfgTRES=cpu=64,mem=250G,billing=64

NodeName=g1 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUTot=128 CPULoad=0.00
   AvailableFeatures=(null)
   ActiveFeatures=(null)
   Gres=gpu:a100:4(S:0-1),gpu:t4:1
   RealMemory=1024000 AllocMem=0
   State=DOWN*+DRAIN ThreadsPerCore=2 Weight=100
   Reason=bad disk [root@2026-01-01T00:00:00]

PartitionName=short
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO
   MaxNodes=UNLIMITED MaxTime=04:00:00 MinNodes=0 MaxCPUsPerNode=UNLIMITED
   Nodes=c001
   PriorityJobFactor=10 PriorityTier=10 OverSubscribe=NO
   State=UP TotalCPUs=64 TotalNodes=1

PartitionName=gpu
   Default=NO MaxNodes=1 MaxTime=UNLIMITED
   Nodes=c001,g1
   PriorityJobFactor=1 PriorityTier=1 OverSubscribe=EXCLUSIVE
   State=UP TotalCPUs=192 TotalNodes=2

ReservationName=maint StartTime=2026-01-10T08:00:00 EndTime=2026-01-10T20:00:00 Duration=12:00:00
   Nodes=g1 NodeCnt=1 CoreCnt=64 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   Users=root Groups=(null) Accounts=(null) State=INACTIVE

Name|Priority|MaxWall|MaxTRESPU|MaxJobsPU
normal|0||cpu=512|
high|100|1-00:00:00||20

Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.000000|0|1.000000|
 physics||10|0.5|0|0|
  physics|ann|1|0.5|0|0|0.5
 chem||30|0.5|0|0|
  organic||parent|0.5|0|0|
"""

OPENB_NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n0,32000,262144,0,
n1,96000,393216,8,G2
n2,96000,393216,8,V100M16
"""

MACHINES = "0\tzewura\t2\t80\t1\t529426432\n1\tzegox\t4\t12\t1.5\t94035968\n"

ALL = {
    "site": SITE_TOML,
    "slurm-conf": SLURM_CONF,
    "scontrol": SCONTROL,
    "openb-nodes": OPENB_NODES,
    "alea-machines": MACHINES,
}


def read(text: str | bytes, name: str = "site.txt") -> Site:
    """Read a site that is in memory, its format found by content."""
    return read_site(Document(name, text.encode() if isinstance(text, str) else text))
