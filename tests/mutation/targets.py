"""Which modules are mutated, and which tests should notice: few, and none that takes seconds for nothing."""

from __future__ import annotations

_ARRAYS, _BRIDGES, _STREAM = (
    "tests/unit/sampling/test_arrays.py",
    "tests/exact/sampling/test_bridge_arrays.py",
    "tests/unit/sampling/test_stream.py",
)
_THRESHOLD, _LAWS, _FRONT = (
    "tests/exact/theory/test_threshold.py",
    "tests/exact/theory/test_laws.py",
    "tests/unit/mechanisms/test_mechanisms.py",
)
_KERNEL = "tests/unit/sampling/test_kernel.py"
_DRAWS, _TAGS = "the_compiled_path_draws_what_numpy_draws", "tags_are_codes_of_whole_messages"
_STEP = tuple(f"{_KERNEL}::test_a_{name}" for name in (
    "step_reads_the_same_bytes_and_draws_the_same", "step_whose_digits_do_not_suffice_is_left_to_numpy",
    "keystream_goes_on_where_somebody_else_read", "step_from_a_code_outside_of_the_alphabet_is_refused",
    "step_takes_codes_of_one_byte",
))  # fmt: skip
_STATE = (
    "tests/unit/mechanisms/test_relaxation.py",
    *("-k", "not draws_by_the_law and not killed_at_random and not that_race and not in_parts"),
)
_LEDGER = ("tests/unit/ledger", "tests/contract/ledger/test_ledger.py", "-k", "not postgres")

TARGETS: dict[str, tuple[str, ...]] = {
    "theory/randomized_response.py": (
        *("src/relaxdp/theory/randomized_response.py", _LAWS, "tests/exact/paper/test_tables.py"),
        "tests/exact/estimation/test_estimators.py",
        "tests/exact/estimation/test_shuffling.py::test_covers",
        *("tests/unit/theory/test_level.py", _THRESHOLD),
    ),
    "theory/epsilon.py": ("src/relaxdp/theory/epsilon.py", "tests/unit/theory/test_level.py", _THRESHOLD),
    "theory/privacy_loss.py": ("src/relaxdp/theory/privacy_loss.py", f"{_FRONT}::test_privacy_loss", _LAWS),
    "sampling/bridge.py": (
        *(_BRIDGES, *_STEP, f"--deselect={_BRIDGES}::test_every_triple_of_bytes"),
        "tests/unit/sampling/test_kernel_self_test.py::test_the_results_are_those_of_numpy",
    ),
    "mechanisms/relaxation.py": _STATE,
    "sampling/arrow_columns.py": (
        *(_ARRAYS, _STREAM, _FRONT, _KERNEL),
        *("-k", "(column or kind or dtype or ids or repeat or one_id or length or callers_line) and not equals_scalar"),
    ),
    "sampling/entropy.py": (_BRIDGES, *_STEP, f"--deselect={_BRIDGES}::test_every_triple_of_bytes"),
    "sampling/keys.py": ("src/relaxdp/sampling/keys.py", "tests/unit/sampling/test_key.py"),
    "sampling/keyed_path.py": (
        *(
            "tests/exact/sampling/test_path.py",
            "--deselect=tests/exact/sampling/test_path.py::test_path_equals_chain_for_other_words",
        ),
        _STREAM,
        "tests/unit/mechanisms/test_kept_vectors.py",
        f"{_ARRAYS}::test_a_position_that_equals_the_threshold",
        f"{_ARRAYS}::test_words_that_lie_on_a_boundary",
        *(f"{_KERNEL}::test_{name}" for name in (_DRAWS, _TAGS, "what_is_asked_for_is_what_draws")),
    ),
    "sampling/private_file.py": ("tests/unit/sampling/test_key.py", *_STATE),
    "sampling/keyed_stream.py": (
        *("src/relaxdp/sampling/keyed_stream.py", "tests/unit/theory/test_level.py", _STREAM, _FRONT),
        *(f"{_KERNEL}::test_{name}" for name in (_DRAWS, _TAGS, "nothing_has_no_length")),
    ),
    "ledger/account.py": _LEDGER,
    "ledger/events.py": ("src/relaxdp/ledger/events.py", *_LEDGER),
    "market/publish.py": ("tests/unit/market/test_publish.py", "-k", "not postgres"),
    "market/listings.py": (
        *("src/relaxdp/market/listings.py", "tests/unit/market/test_listings.py", "tests/unit/market/test_orders.py"),
        *("tests/unit/market/test_pools.py", "-k", "not postgres"),
    ),
    "market/orders.py": (
        *("src/relaxdp/market/orders.py", "tests/unit/market/test_orders.py", "tests/unit/market/test_pools.py"),
        *("-k", "not postgres"),
    ),
    "market/pools.py": ("tests/unit/market/test_pools.py", "-k", "not postgres"),
    "market/receipts.py": ("src/relaxdp/market/receipts.py", "tests/unit/market/test_receipts.py"),
}
