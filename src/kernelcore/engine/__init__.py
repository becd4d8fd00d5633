"""The one door to compiled code: which engine an array belongs to, and what it asks of one."""
