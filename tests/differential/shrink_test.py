"""Tests of shrink() of campaign.py: steps that only fail together are left, wherever they stand, and in few runs."""
import itertools
import math
import unittest

import campaign


class Shrink(unittest.TestCase):
    def test_each_pair_is_found_in_few_runs(self):
        for pair in itertools.combinations(range(0, 400, 57), 2):
            runs = []
            left = campaign.shrink(list(range(400)), lambda steps: runs.append(steps) or set(pair) <= set(steps))
            self.assertEqual(left, list(pair))
            self.assertLess(len(runs), 8 * len(pair) * math.log2(400))

    def test_steps_of_which_one_of_two_must_be_left(self):
        left = campaign.shrink(list(range(100)), lambda steps: 7 in steps and (50 in steps or 51 in steps) and 99 in steps)
        self.assertIn(left, ([7, 50, 99], [7, 51, 99]))

    def test_nothing_can_be_left_out(self):
        self.assertEqual(campaign.shrink(list(range(9)), lambda steps: len(steps) == 9), list(range(9)))


if __name__ == "__main__":
    unittest.main()
