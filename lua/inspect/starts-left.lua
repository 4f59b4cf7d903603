-- Reads how many tasks may start by a limit per window: ObstaclesRole.startsLeft and queueStartsLeft.
--
-- KEYS
--   1 starts
-- ARGV
--   1 most: in a window
--   2 window: milliseconds
--   3 nowNanos
-- Returns
--   how many may start, and milliseconds until more may (0 while some may)
--
-- Uses shared/starts.lua

local left, fewer_in = starts_left(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3])
return { left, left == 0 and fewer_in or 0 }
