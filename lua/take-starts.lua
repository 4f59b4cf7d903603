-- Counts starts of tasks, up to a limit per window: LimitingRole.takeStarts.
--
-- KEYS
--   1 starts
-- ARGV
--   1 most: in a window
--   2 window: milliseconds
--   3 nowNanos
--   4 wanted
-- Returns
--   how many may start, and milliseconds until more may (0 when all may)
--
-- Uses shared/starts.lua

local wanted = tonumber(ARGV[4])
local left, fewer_in, time = starts_left(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3])
local granted = math.min(left, wanted)
if granted > 0 then count_starts(KEYS[1], granted, tonumber(ARGV[2]), time) end
return { granted, granted < wanted and fewer_in or 0 }
