"""Stageflow against DDP and torch's pipelining, on loopback and on slower wires.

    python tests/benchmarks/bench_runtime.py [--models vgg,lstm] [--networks loopback,1gbit]

Every network gets one launch of two processes, in which all contestants train the same model
on the same data in turns; ratios are taken round by round, so a busy machine falls on all.
Wire bytes are counted at the network interfaces. Without the right to make network
namespaces only the loopback is raced. A launch that takes longer than `--patience` seconds
ends with the stack of every thread, so that waiting is told from computing slowly.
"""

import argparse
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.networks import SPEEDS, Network, available, network, speed  # noqa: E402
from tests.benchmarks.ranks import end, launch  # noqa: E402

MODELS = {"vgg": 32, "lstm": 16, "transformer": 8, "waiting": 16}
"""Samples per microbatch; "waiting" is for more ranks than cores."""
CONTESTANTS = (
    "single",
    "ddp",
    "torch gpipe",
    "torch 1f1b",
    "gpipe",
    "1f1b-flush",
    "zb-h1",
    "2bw",
    "pipedream",
)
"""Raced by default; "data parallel", "torch interleaved" and every other schedule may be."""
SLOW = {"ddp", "data parallel"}
"""Those that send all weights."""
LEAST, FEW = 1.25e8, 6
"""Bytes per second up to which those get this few microbatches a round (their updates wait for
the wire for a second or more), and a third of them at a tenth of it."""
PORT = 29_640


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="vgg,lstm,transformer")
    parser.add_argument("--networks", default=",".join((*SPEEDS, "cluster-a")))
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8, help="microbatches of a flush's update")
    parser.add_argument("--cut", type=int, default=0, help="this layer begins the second stage")
    parser.add_argument("--patience", type=float, default=600)
    parser.add_argument("--rank", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        race(given)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so remove the namespaces
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    for named in given.networks.split(","):
        if named != "loopback" and not available():
            print(f"{named}: no right to make network namespaces here, left out")
            continue
        for model in given.models.split(","):
            if named == "cluster-a" and model != "vgg":
                continue  # the ratio is VGG-16's
            name = as_cluster_a(model) if named == "cluster-a" else named
            with network(name) as where:
                names = given.contestants.split(",")
                table(model, where, raced(given, model, names, where, PORT))


def raced(
    given: argparse.Namespace,
    model: str,
    names: Sequence[str],
    where: Network,
    port: int,
    ranks: int = 2,
) -> dict:
    """The laps of each contestant, [samples/s, steady seconds, bound, seconds on a clock], its
    bytes per sample, and the cuts."""
    told = json.dumps({"model": model, "network": where.name, "interface": where.interface})
    arguments = ["--rank", told, "--contestants", ",".join(names)]
    for option in ("rounds", "microbatches", "batch", "cut", "patience"):
        if hasattr(given, option):
            arguments += [f"--{option}", str(getattr(given, option))]
    return launch(__file__, arguments, ranks, port, where)


def as_cluster_a(model: str) -> str:
    """The network on which data parallelism is to this model's compute what it was to VGG-16's
    on the paper's Cluster-A (see `cluster_a`)."""
    from tests.benchmarks import cluster_a

    step = launch(cluster_a.__file__, [model, str(MODELS[model])], 2, PORT)
    rate = cluster_a.bandwidth(step["bytes"], step["seconds"])
    print(f"\n{cluster_a.told(step, rate)}", flush=True)
    return f"{round(rate * 8 / 1e6)}mbit"


def race(given: argparse.Namespace) -> None:
    """One rank: all contestants in turns, round by round."""
    from tests.benchmarks.contestants import Race, contestant, cuts
    from tests.benchmarks.on_a_clock import seconds_on_a_clock
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    faulthandler.dump_traceback_later(given.patience, exit=True)
    use_one_thread()
    keep_freed_memory()  # for all contestants
    world = join()
    model, interface = given.rank["model"], given.rank["interface"]
    file = Path(__file__).parent / "models" / f"{model}.py"
    place = given.rank["network"]
    bandwidth = speed(place)
    course = Race(world, file, MODELS[model], given.batch, (), ())
    bounds = [cuts(course, bandwidth, parts) for parts in (world.size, 4)]
    agreed = [tuple(int(world.agreed(b)) for b in each) for each in bounds]
    if given.cut:
        agreed[0] = (0, given.cut, agreed[0][-1])
    course = Race(world, file, MODELS[model], given.batch, *agreed)
    names = given.contestants.split(",")
    running = {name: contestant(course, name) for name in names}
    results: dict = {"bounds": agreed, "laps": {name: [] for name in names}, "bytes": {}}
    for name in names:
        running[name](given.batch * 2 if name not in SLOW else 2)
    for _ in range(given.rounds):
        for name in names:
            count = given.microbatches
            if name in SLOW and bandwidth is not None and bandwidth <= LEAST:
                count = FEW if bandwidth > LEAST / 10 else FEW // 3
            elif name == "single":
                count = 8
            before = sent(interface)
            lap = running[name](count)
            moved = sum(world.total([float(sent(interface) - before)]))
            results["bytes"][name] = moved / lap.samples
            clock = lap.steady and seconds_on_a_clock(running[name], bandwidth)
            results["laps"][name].append([lap.samples / lap.seconds, lap.steady, lap.bound, clock])
    leave()
    end(results if world.rank == 0 else None)


def sent(interface: str) -> int:
    """Bytes that this host's interface has sent so far, headers included."""
    return int(Path(f"/sys/class/net/{interface}/statistics/tx_bytes").read_text())


def table(model: str, where: Network, results: dict) -> None:
    """Samples per second, and ratios to DDP and torch's 1F1B with their spread."""
    laps = results["laps"]
    print(f"\n{model} on {where.name}, cuts {results['bounds']}, load {os.getloadavg()[0]:.1f}")
    print(f"{'':18}{'samples/s':>10}{'of DDP':>18}{'of torch 1f1b':>18}", end="")
    print(f"{'of the bound':>14}{'on a clock':>12}{'kB/sample':>11}")
    for name, found in laps.items():
        speeds = [lap[0] for lap in found]
        print(f"{name:18}{median(speeds):>10.1f}", end="")
        for peer in ("ddp", "torch 1f1b"):
            print(f"{ratio(speeds, [lap[0] for lap in laps.get(peer, [])]):>18}", end="")
        bounds = [bound / steady for _, steady, bound, _ in found if steady]
        clocks = [bound / clock for _, _, bound, clock in found if clock]
        print(f"{f'{median(bounds):.2f}' if bounds else '':>14}", end="")
        print(f"{f'{median(clocks):.2f}' if clocks else '':>12}", end="")
        kilobytes = results["bytes"][name] / 1e3
        print(f"{kilobytes:>11.1f}" if where.interface != "lo" else "", flush=True)


def ratio(mine: list[float], theirs: list[float]) -> str:
    """Median and range of the rounds' ratios."""
    ratios = [a / b for a, b in zip(mine, theirs, strict=False)]
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else ""


if __name__ == "__main__":
    main()
