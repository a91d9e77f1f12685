"""``python -m public_cases [WORD ...]``: run the cases whose name has one of the words, or all."""

import sys
from collections import Counter

from public_cases.cases import REVIEWS
from public_cases.table import CASES


def main(words: list[str]) -> int:
    """Print a table of the cases, and return 1 if one of them is wrong."""
    if not REVIEWS.exists():
        print("no ../shared/reviews beside this checkout: nothing to run")
        return 0
    verdicts: Counter[str] = Counter()
    for case in CASES:
        if words and not any(word in case.name for word in words):
            continue
        outcome = case.run()
        wrong = case.look(outcome)
        verdict = "WRONG" if wrong else "right"
        verdicts[verdict] += 1
        print(f"{verdict}  {case.name}: {case.right}", flush=True)
        print(f"       seen: {outcome.brief()}", *([f"       {wrong}"] if wrong else []), sep="\n")
    print(f"{verdicts.total()} cases, {verdicts['right']} right, {verdicts['WRONG']} wrong")
    return 1 if verdicts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
