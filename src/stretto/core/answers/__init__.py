"""Each result in one sentence: one function per kind of result, called by the property ``answer`` of the result.

Terminal, JSON, run log, pages and Python show this text. An answer states no interval that was not measured, calls ties
ties, and never says "optimal" where an input was assumed.
"""
