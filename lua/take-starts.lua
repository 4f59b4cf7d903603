-- Counts starts of tasks, up to a limit per window: LimitingRole.takeStarts.
--
-- KEYS
--   1 starts
-- ARGV
--   1 most: in a window
--   2 window: milliseconds
--   3 nowNanos
--   4 wanted
--   5 allowance: milliseconds after the call in which they start
-- Returns
--   how many may start, milliseconds until more may (0 while more may), milliseconds for which those that may start count (0 when none
--   may), how many more might have started, and the time at which those that may count
--
-- Uses shared/starts.lua

local wanted = tonumber(ARGV[4])
local most, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local left, fewer_in, time, gone, behind, fewer = starts_left(KEYS[1], most, window, ARGV[3])
local granted = math.min(left, wanted)
local counts_for, counted_at = 0, 0
if granted > 0 then
  counted_at = latest_start(most, window, time, tonumber(ARGV[5]), behind)
  count_starts(KEYS[1], granted, counted_at, window, time, gone)
  counts_for = counted_at + window - time
end
left = left - granted
if fewer == 0 and granted > 0 then fewer_in = counts_for end
return { granted, (left == 0 and fewer_in) or 0, counts_for, left, counted_at }
