"""Every URL parameter and every key of the session, typed: nobody else names one."""

from datetime import UTC, tzinfo
from enum import StrEnum
from math import inf
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from backend.errors import NotFound
from backend.whole import is_whole


class Page(StrEnum):
    """The pages, by their file; the URL path is the file's stem (of the home page: none)."""

    HOME = "views/home.py"
    START = "views/start.py"
    MODELS = "views/models.py"
    PROFILE = "views/profile.py"
    PLAN = "views/plan.py"
    SCHEDULES = "views/schedules.py"
    WHAT_IF = "views/what_if.py"
    RUNS = "views/runs.py"
    RUN = "views/run.py"
    SWEEPS = "views/sweeps.py"
    COMPARE = "views/compare.py"
    LAUNCH = "views/launch.py"
    NODES = "views/nodes.py"
    ACCOUNT = "views/account.py"
    PEOPLE = "views/people.py"
    NOTIFICATIONS = "views/notifications.py"
    HELP = "views/help.py"
    PROJECTS = "views/projects.py"

    @property
    def path(self) -> str:
        """The page's place in the URL."""
        return self.value.removeprefix("views/").removesuffix(".py")


class Param(StrEnum):
    """What of a view can be linked to."""

    ID = "id"
    PROFILE = "profile"
    PLAN = "plan"
    CLUSTER = "cluster"
    SCHEDULE = "schedule"
    BATCH = "batch"
    OPTIMIZER = "optimizer"
    STATE = "state"
    KIND = "kind"
    TEXT = "text"
    PAGE = "page"
    PLANNER = "planner"
    SORT = "sort"
    ORDER = "order"
    COLUMNS = "columns"
    DEFINITION = "definition"
    OWNER = "owner"
    TAG = "tag"
    STARRED = "starred"
    SINCE = "since"
    UNTIL = "until"
    ACCURACY_FROM = "accuracy-from"
    ACCURACY_TO = "accuracy-to"
    METRIC_FROM = "metric-from"
    METRIC_TO = "metric-to"
    EVALUATE = "evaluate"
    PATIENCE = "patience"
    WATCH = "watch"
    BETTER = "better"
    MAX_UPDATES = "max-updates"
    MAX_SECONDS = "max-seconds"
    KEEP_BEST = "keep-best"
    TRACKERS = "trackers"
    RUNS = "runs"
    PLANS = "plans"
    COMPARED = "of"
    METRIC = "metric"
    AXIS = "axis"
    SMOOTHING = "smoothing"
    TARGET = "target"
    TARGET_LOSS = "target-loss"
    FLOOR = "floor"
    RANK_BY = "rank-by"
    LOG = "log"
    DIFFERING = "differing"
    RUN = "run"
    NAME = "name"
    EPOCHS = "epochs"
    DATA = "data"
    SEED = "seed"
    WEIGHTS = "weights"
    WEIGHTS_PATH = "weights-path"
    WEIGHTS_PARTIAL = "weights-partial"
    SAMPLES = "samples"
    PATH = "path"
    INPUTS = "inputs"
    TARGETS = "targets"
    HELD_OUT = "held-out"
    LENGTH = "length"
    LAST = "last"
    BUCKETS = "buckets"
    TOKENIZER = "tokenizer"
    TASK = "task"
    PACKING = "packing"
    ANSWERS = "answers"
    TEMPLATE = "template"
    MASKED = "masked"
    AUGMENT = "augment"
    NORMALISE = "normalise"
    FILL = "fill"
    STANDARDISE = "standardise"
    RATE = "lr"
    PRECISION = "precision"
    WEIGHT_DECAY = "weight-decay"
    CLIP = "clip"
    WARM_UP = "warm-up"
    DECAY = "decay"
    WARM_UP_UPDATES = "warm-up-updates"
    BETAS = "betas"
    EPS = "eps"
    MOMENTUM = "momentum"
    DECAYED = "decayed"
    GROUPS = "groups"
    EMA = "ema"
    AVERAGED = "averaged"
    CLIP_BY = "clip-by"
    MICROBATCH = "microbatch"
    REPETITIONS = "repetitions"
    CUT = "cut"
    CODECS = "codecs"
    DETAIL = "detail"
    WINDOW = "window"
    PAIRS = "pairs"
    SHOW = "show"
    PRICE = "price"
    PRICES = "prices"
    EPOCH = "epoch"
    SEARCH = "search"
    TABLE = "table"
    ALL = "all"
    MICROBATCHES = "microbatches"
    OTHER = "other"
    PROJECT = "project"
    MEMORY = "memory"
    RECOMPUTE = "recompute"
    CHUNKS = "chunks"
    PIPELINES = "pipelines"
    UPDATE_TIMES = "update-times"
    RUN_AHEAD = "run-ahead"
    CODEC = "codec"
    SITES = "sites"
    CODEC_OF_SUMS = "codec-of-sums"
    SPLIT_CHANNELS = "split-channels"
    SEARCH_ON = "search-on"
    TOOK_ALONE = "pipeline-took"
    TOOK_TOGETHER = "pipelines-took"
    FURTHER = "also"
    DEVICE = "device"
    MEASURED_ON = "measured-on"
    DEVICE_PRECISION = "device-precision"
    STATE_PRECISION = "state-precision"
    LOCAL_HEAD = "local-head"
    SHARD_STATE = "shard-state"
    OUTPUT = "output"
    NODE = "node"
    SPAN = "span"
    VARY = "vary"
    DRAWS = "draws"
    STOP_FIRST = "stop-first"
    STOP_BEHIND = "stop-behind"
    SWEEP_METRIC = "by"
    SWEEP_BETTER = "by-better"
    GRACE = "grace"


class Key(StrEnum):
    """What lasts for one visitor's session and is not worth a link."""

    NOTICE = "notice"
    SELECTED = "selected-runs"
    TICKED_PLANS = "ticked-plans"
    EDITS = "plan-edits"
    PLANNING = "planning"
    ANSWERED = "answered-question"
    SAVED = "opened-plan"
    OPENED = "opened-modules"
    PROJECT = "chosen-project"
    VISITOR = "visitor"


def text(param: Param, default: str = "") -> str:
    """The parameter's text, `default` without it."""
    return st.query_params.get(param.value, default)


def number(param: Param) -> int | None:
    """The parameter as a whole number above 0; None without one."""
    found = text(param)
    return int(found) if is_whole(found) and int(found) > 0 else None


def wanted_id(param: Param, noun: str) -> int | None:
    """The id that the link names; None where it names none. Raises `NotFound`, with `noun`, where
    it names what can be no id: a link shows what it names or says that it is not there."""
    found = text(param)
    if not found:
        return None
    if not (is_whole(found) and int(found) > 0):
        raise NotFound(f"no {noun} {found!r:.60}")
    return int(found)


def amount(param: Param) -> float | None:
    """The parameter as a number above 0; None without one."""
    try:
        found = float(text(param))
    except ValueError:
        return None
    return found if 0 < found < inf else None


def put(param: Param, value: object) -> None:
    """Write the parameter into the URL; "" and None take it out."""
    if value in (None, ""):
        st.query_params.pop(param.value, None)
    elif st.query_params.get(param.value) != str(value):
        st.query_params[param.value] = str(value)


def hold(param: Param) -> None:
    """Keep what a link from a page to itself names: Streamlit takes it out of the URL at the next
    rerun, unless the script has put it there. Once, since each time is a step of the browser's
    history."""
    key, found = f"held-{param.value}", text(param)
    if st.session_state.get(key, "") != found:
        st.session_state[key] = found
        st.query_params.from_dict(st.query_params.to_dict())


def bound(param: Param) -> dict[str, Any]:
    """The options of a widget whose value is in the URL."""
    return {"key": param.value, "bind": "query-params"}


def choose(param: Param, value: object) -> None:
    """Set a widget with that value in the URL; where it was drawn before, Streamlit writes that."""
    if param.value not in st.session_state:
        put(param, "true" if value is True else value or None)
    st.session_state[param.value] = value


def go(page: Page, **params: object) -> NoReturn:
    """Open another page with these URL parameters."""
    st.switch_page(page.value, query_params={name: str(value) for name, value in params.items()})


def wanted_projects() -> tuple[int | None, ...]:
    """The project that the link names, then the one that was chosen in this visit."""
    return number(Param.PROJECT), chosen_project()


def chosen_project() -> int | None:
    """None where there is nothing to choose."""
    found = st.session_state.get(Key.PROJECT.value)
    return found if isinstance(found, int) else None


def choose_project(project_id: int | None) -> None:
    """From now on lists show this project, and what is new goes into it."""
    st.session_state[Key.PROJECT.value] = project_id


def notify(message: str) -> None:
    """Leave a sentence for the next page that is drawn."""
    st.session_state[Key.NOTICE.value] = message


def done(message: str) -> NoReturn:
    """Draw the page anew, with a sentence on what was done."""
    notify(message)
    st.rerun()


def show_notice() -> None:
    """Show, once, what `notify` left."""
    if message := st.session_state.pop(Key.NOTICE.value, ""):
        st.toast(message, icon=":material/check:")


def zone() -> tzinfo:
    """The visitor's time zone, UTC where the browser does not say."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return UTC
