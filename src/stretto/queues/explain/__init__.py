"""Why a job of a replay waited: what it waited for, who held that, and what would have let it start earlier."""
