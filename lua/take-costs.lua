-- Counts what tasks cost in a window of time, up to a limit: LimitingRole.takeCosts. The first task that does not fit is noted, and until
-- a task of its cost is granted none that costs less is: else it might wait for ever. The note ends some time after there was room.
--
-- KEYS
--   1 starts
-- ARGV
--   1 most: in a window
--   2 window: milliseconds
--   3 nowNanos
--   4 allowance: milliseconds after the call in which they start
--   5… the costs of the tasks, above 0
-- Returns
--   how many tasks may start, milliseconds until the next may (0 when all may), the time at which they count, and the least
--   cost that may start until then
--
-- Uses shared/starts.lua

local GRACE_MS, SHORTEST_MS = 2000, 100

local key, most, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local left, _, time, gone, behind = starts_left(key, most, window, ARGV[3])
local at = latest_start(most, window, time, tonumber(ARGV[4]), behind)

local saved, opens = string.match(redis.call('HGET', key, 'saving') or '', '^(%d+) (%d+)$')
saved, opens = tonumber(saved), tonumber(opens)
if saved and time > opens + GRACE_MS then saved = nil end

local granted, sum = 0, 0
for i = 5, #ARGV do
  local cost = tonumber(ARGV[i])
  if sum + cost > left or (saved and cost < saved) then break end
  granted, sum, saved = granted + 1, sum + cost, nil
end
if sum > 0 then count_starts(key, sum, at, window, time, gone) end

local refused = tonumber(ARGV[5 + granted])
if refused and not (saved and refused < saved) then
  -- What counts leaves the window by its times, until there is room.
  local parts, over, last = {}, refused - most, time - window
  local counts = redis.call('HGETALL', key)
  for i = 1, #counts, 2 do
    local counted, count = tonumber(counts[i]), math.floor(tonumber(counts[i + 1]) or 0)
    if counted and counted + window > time then
      parts[#parts + 1], over = { counted, count }, over + count
    end
  end
  table.sort(parts, function(one, other) return one[1] < other[1] end)
  for i = 1, #parts do
    if over <= 0 then break end
    last, over = parts[i][1], over - parts[i][2]
  end
  saved, opens = refused, last + window
end

if saved then
  redis.call('HSET', key, 'saving', string.format('%.0f %.0f', saved, opens))
else
  redis.call('HDEL', key, 'saving')
end
if not refused then return { granted, 0, at, 0 } end
return { granted, math.max(opens - time, SHORTEST_MS), at, saved }
