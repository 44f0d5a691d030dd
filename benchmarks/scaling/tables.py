"""Scaling: the tables of the page, each from the rows of one measurement, with its aims and whether they were met."""

from experiments.text import markdown

SHARES = {64: 0.35, 256: 0.65, 512: 0.8, 1024: 0.8}  # of GEMM, by M
FIT_ERROR, DISK, FASTER, EXPONENT, MEGABYTES, PREDICTED = 1e-3, 1.3, 20, 1.05, 1000, 1_000_000
SLOWER = 10  # times our time, that SVGP should need

FITS = """A whole default fit, with the operations of its training passes only; and the largest difference of f, on
10,000 fresh
rows, between fits to 100,000 rows in single and in double precision with the same kernel and points."""
FIVE_MILLION = """{n_rows:,} rows of 18 columns, M = 64; log loss on fresh rows, whose best possible value is
{bayes:.4f}. The Parquet
file was removed from the system's cache before the fit; later passes may find it there again."""
ALGORITHM_1 = """The paper's algorithm 1 in plain NumPy on the same rows: minibatches of 100, steps (t+1)^-0.7. The
time excludes
scaling, k-means and the link, the better of two, one of which is fitted to the held-out rows; one or all BLAS
threads, whichever is faster. One run has the paper's kernel (θ = 5), the other the kernel, points, prior mean and
link that our fit found by tuning."""
COVTYPE = """{n_rows:,} training rows of 54 columns; the other rows are test rows. Ratios are relative to our time at
the M in
brackets. Nystroem (γ = 1/108) with either classifier uses standardised columns in single precision: in double
precision, its features alone would take 8 GB at M = 2000."""
SVGP = """SVGP uses minibatches of 1024 and Adam with rate 0.01, and learns one length-scale, the variance and inducing
points. Our log loss at the same M was {goal} in {ratio:.1f} times our time, {epochs:.1f} epochs:"""
DASK = """A training pass over {n_rows:,} rows, M = {m}: two threads in memory against two Dask workers, processes with
one thread each. The last columns show how a worker spends its time."""


def verdict(aim, missed):
    """A sentence for every aim."""
    return f"Aim: {aim}. " + (f"**Missed: {missed}.**" if missed else "Met.")


def gemm(rows):
    passes = [row for row in rows if row["what"] == "pass"]
    fits = [row for row in rows if row["what"] == "fit"]
    low = [str(row["m"]) for row in passes if row["share"] < SHARES[row["m"]]]
    far = [f"{row['difference_of_f']:.1e} at M = {row['m']}" for row in fits if row["difference_of_f"] > FIT_ERROR]
    unsettled = [str(row["m"]) for row in fits if not row["both_converged"]]
    return "\n\n".join(
        [
            "A training pass counts 3M²+2MD operations per row.",
            markdown(
                ["M", "rows", "share of GEMM", "aim", "s per million rows", "s per step on M×M matrices"],
                [
                    [
                        str(row["m"]),
                        f"{row['n_rows']:,}",
                        f"{row['share']:.2f}",
                        f"{SHARES[row['m']]:.2f}",
                        f"{row['seconds_per_million']:.2f}",
                        f"{row['step_seconds']:.3f}",
                    ]
                    for row in passes
                ],
            ),
            verdict("the shares in the table", f"M = {', '.join(low)}" if low else ""),
            FITS,
            markdown(
                [
                    "M",
                    "rows",
                    "seconds",
                    "tuning",
                    "passes",
                    "share",
                    "without tuning",
                    "difference of f",
                    "max f",
                ],
                [
                    [
                        str(row["m"]),
                        f"{row['n_rows']:,}",
                        f"{row['seconds']:.1f}",
                        f"{row['tuning_seconds']:.1f}",
                        f"{row['passes']:.2f}",
                        f"{row['share']:.2f}",
                        f"{row['share_without_tuning']:.2f}",
                        f"{row['difference_of_f']:.1e}",
                        f"{row['largest_f']:.1f}",
                    ]
                    for row in fits
                ],
            ),
            verdict(f"a difference of at most {FIT_ERROR:g}", ", ".join(far))
            + (f" Not settled to 1e-7 nats a row within 30 passes: M = {', '.join(unsettled)}." if unsettled else ""),
        ]
    )


def five_million(rows):
    fits = [row for row in rows if row["what"] == "fit"]
    ratio = next(row["ratio"] for row in rows if row["what"] == "disk over memory")
    races = [row for row in rows if row["what"] == "algorithm 1"]
    fastest = {}
    for row in sorted(races, key=lambda row: (not row["reached"], row["ratio"])):
        whose = {"ours": "our tuned kernel"}.get(row["kernel"], "the paper's kernel")
        fastest.setdefault((whose, row["near"]), row)
    low = [
        f"{row['ratio']:.2g} times to within {near:g} if it is given {kernel}"
        for (kernel, near), row in fastest.items()
        if row["ratio"] < FASTER
    ]
    return "\n\n".join(
        [
            FIVE_MILLION.format(**fits[0]),
            markdown(
                ["rows from", "seconds", "tuning", "passes", "log loss", "peak MB", "MB beyond the input"],
                [
                    [
                        row["form"],
                        f"{row['seconds']:.1f}",
                        f"{row['tuning_seconds']:.1f}",
                        f"{row['passes']:.2f}",
                        f"{row['log_loss']:.4f}",
                        f"{row['peak_megabytes']:.0f}",
                        f"{row['beyond_input_megabytes']:.0f}",
                    ]
                    for row in fits
                ],
            ),
            f"Disk over memory: {ratio:.2f}. " + verdict(f"at most {DISK}", f"{ratio:.2f}" if ratio > DISK else ""),
            ALGORITHM_1,
            markdown(
                ["kernel", "log loss within", "seconds", "epochs", "best log loss", "over our fit", "without tuning"],
                [
                    [
                        kernel,
                        f"{near:g}",
                        f"{row['seconds']:.1f}",
                        f"{row['epochs']:.2f}",
                        f"{row['best_log_loss']:.4f}",
                        ("" if row["reached"] else "more than ") + f"{row['ratio']:.2g}",
                        ("" if row["reached"] else "more than ") + f"{row['ratio_without_tuning']:.2g}",
                    ]
                    for (kernel, near), row in sorted(fastest.items(), reverse=True)
                ],
            ),
            verdict(f"at least {FASTER} times our time", "; ".join(low)),
        ]
    )


def growth(rows):
    fits = [row for row in rows if row["what"] == "fit"]
    slopes = [row for row in rows if row["what"] == "exponent"]
    limited = next(row for row in rows if row["what"] == "limited")
    steep = [
        f"{row['without_smallest']:.2f} from {row['form']}" for row in slopes if row["without_smallest"] > EXPONENT
    ]
    large = [row for row in fits if row["beyond_input_megabytes"] > MEGABYTES]
    return "\n\n".join(
        [
            "Default fits, 18 columns, M = 64, each in a process of its own. Memory includes the libraries.",
            markdown(
                ["rows", "from", "seconds", "tuning", "passes", "peak MB", "MB beyond the input"],
                [
                    [
                        f"{row['n_rows']:,}",
                        row["form"],
                        f"{row['seconds']:.1f}",
                        f"{row['tuning_seconds']:.1f}",
                        f"{row['passes']:.2f}",
                        f"{row['peak_megabytes']:.0f}",
                        f"{row['beyond_input_megabytes']:.0f}",
                    ]
                    for row in fits
                ],
            ),
            markdown(
                ["exponent of N in the time", "all sizes", "without the smallest"],
                [[row["form"], f"{row['over_all']:.2f}", f"{row['without_smallest']:.2f}"] for row in slopes],
            ),
            "The constant time of tuning lowers the exponent. "
            + verdict(f"an exponent of at most {EXPONENT}", ", ".join(steep)),
            verdict(
                f"less than {MEGABYTES:,} MB beyond the input",
                ", ".join(f"{row['beyond_input_megabytes']:.0f} at {row['n_rows']:,}" for row in large),
            ),
            with_limit(limited),
        ]
    )


def with_limit(row):
    gibibytes = row["limit_bytes"] / 2**30
    failures = "; ".join(f"with {limit} it failed: {why}" for limit, why in row["failed"].items())
    if row["limit"] is None:
        return f"**The largest fit from disk did not run with {gibibytes:.0f} GiB**: {failures}."
    kind = {"RLIMIT_AS": "address space", "RLIMIT_DATA": "data"}[row["limit"]]
    return (
        f"{row['n_rows']:,} rows from disk in a process limited to {gibibytes:.0f} GiB of {kind} ({row['limit']}): "
        f"{row['seconds']:.1f} s, peak {row['peak_megabytes']:.0f} MB." + (f" {failures}." if failures else "")
    )


def covtype(rows):
    lines = []
    for row in rows:
        head = [row["method"], "" if row["m"] is None else str(row["m"])]
        if "failed" in row:
            lines.append([*head, f"failed: {row['failed']}", "", "", "", ""])
            continue
        memory = f"{row['peak_megabytes']:.0f}" if "peak_megabytes" in row else ""
        ratio = f"{row['ratio']:.2f} (M = {row['to']})" if row["method"] != "ours" else "1"
        lines.append([*head, f"{row['seconds']:.0f}", ratio, f"{row['log_loss']:.4f}", f"{row['error']:.4f}", memory])
    told = [
        COVTYPE.format(**rows[0]),
        markdown(["method", "M", "seconds", "over ours", "log loss", "error", "peak MB"], lines),
        against_logistic_regression([row for row in rows if "failed" not in row]),
    ]
    svgp = [row for row in rows if "curve" in row]
    if svgp:
        goal = "reached" if svgp[0]["reached"] else "**not reached**"
        told += [
            SVGP.format(goal=goal, ratio=svgp[0]["ratio"], epochs=svgp[0]["epochs"]),
            markdown(
                ["seconds", "log loss", "error"],
                [[f"{seconds:.0f}", f"{loss:.4f}", f"{error:.4f}"] for seconds, loss, error in svgp[0]["curve"]],
            ),
            verdict(
                f"{SLOWER} times our time",
                f"it was stopped after {svgp[0]['ratio']:.1f} times" if svgp[0]["ratio"] < SLOWER else "",
            ),
        ]
    return "\n\n".join(told)


def against_logistic_regression(rows):
    """At equal M, and for the sizes that were measured."""
    ours = {row["m"]: row for row in rows if row["method"] == "ours"}
    missed = [
        f"{1 / row['ratio']:.1f} times slower at M = {row['m']}"
        if row["ratio"] < 1
        else f"a higher log loss at M = {row['m']}"
        for row in rows
        if row["method"] == "Nystroem + logistic regression"
        and (row["ratio"] < 1 or row["log_loss"] < ours[row["m"]]["log_loss"])
    ]
    aim = "at M = 500, 1000 and 2000 faster than Nystroem + logistic regression, at lower log loss"
    unmeasured = [str(m) for m in (500, 1000, 2000) if m not in ours]
    also = [f"M = {', '.join(unmeasured)} was not measured"] if unmeasured else []
    return verdict(aim, "; ".join(missed + also))


def prediction(rows):
    first = rows[0]["rows_per_second"]
    return "\n\n".join(
        [
            markdown(
                ["", "M", "rows per second", "share of double GEMM"],
                [[r["what"], str(r["m"]), f"{r['rows_per_second']:,.0f}", f"{r['share']:.2f}"] for r in rows],
            ),
            "Predictions use double precision, whatever the precision of the fit. The share counts 2M²+2MD "
            "operations per row. "
            + verdict(
                f"{PREDICTED:,} rows per second at M = 64 in memory", f"{first:,.0f}" if first < PREDICTED else ""
            ),
        ]
    )


def dask(rows):
    kinds = list(dict.fromkeys(kind for row in rows for kind in row["worker"]))
    lines = []
    for row in rows:
        rest = row["seconds_there"] - sum(row["worker"].values())
        spent = [row["worker"].get(kind, 0.0) for kind in kinds]
        figures = [f"{figure:.3f}" for figure in (row["seconds_here"], row["seconds_there"])]
        lines.append(
            [
                f"{row['rows_per_partition']:,}",
                *figures,
                f"{row['ratio']:.2f}",
                *[f"{figure:.3f}" for figure in (*spent, max(rest, 0.0))],
            ]
        )
    header = ["rows per partition", "s in memory", "s with Dask", "ratio", *kinds, "scheduling, waiting"]
    return DASK.format(**rows[0]) + "\n\n" + markdown(header, lines)


SECTIONS = {
    "gemm": ("Share of the machine's own matrix product", gemm),
    "five_million": ("Five million rows", five_million),
    "growth": ("Growing numbers of rows", growth),
    "covtype": ("covtype, compared with alternatives", covtype),
    "prediction": ("Prediction", prediction),
    "dask": ("A pass with Dask", dask),
}


def cluster(rows):
    return markdown(
        [
            "rows",
            "M",
            "cores",
            "tasks",
            "levels",
            "sums moved",
            "models moved",
            "read",
            "s per pass",
            "s per fit",
            "efficiency",
            "bottleneck",
        ],
        [
            [
                f"10^{len(str(row['n_rows'])) - 1}",
                str(row["m"]),
                f"{row['cores']:,}",
                f"{row['tasks']:,}",
                str(row["levels"]),
                bytes_told(row["sums_moved"]),
                bytes_told(row["model_moved"]),
                bytes_told(row["read"]),
                f"{row['pass_seconds']:,.1f}",
                f"{row['fit_seconds']:,.0f}",
                f"{row['efficiency']:.0%}",
                row["largest"],
            ]
            for row in rows
        ],
    )


def memory(by_size):
    names = list(next(iter(by_size.values())))
    lines = [
        [str(m), *[f"{parts[name] / 1e6:,.1f}" for name in names], f"{sum(parts.values()) / 1e6:,.0f}"]
        for m, parts in by_size.items()
    ]
    return markdown(["M", *names, "together"], lines)


def bytes_told(number):
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError


def local_models(rows):
    """The arithmetic of local models."""
    return markdown(
        ["rows", "leaves", "hours of one core", "minutes", "shuffle", "minutes of it", "model", "edges"],
        [
            [
                f"10^{len(str(row['n_rows'])) - 1}",
                f"{row['leaves']:,}",
                f"{row['hours']:.1f}",
                f"{row['minutes']:.1f}",
                f"{row['shuffled'] / 1e9:,.0f} GB",
                f"{row['shuffle_minutes']:.1f}",
                f"{row['model'] / 1e9:,.0f} GB",
                f"{row['edges']:,}",
            ]
            for row in rows
        ],
    )
