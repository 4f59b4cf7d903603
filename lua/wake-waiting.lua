-- Moves tasks of a waitlist to the front of their queue, the longest waiting one first: LimitingRole.wakeWaiting.
-- A task that has left `retry` since, or is there for another time, no longer waits: it is only removed from the waitlist.
--
-- KEYS
--   1 waiting
--   2 retry
--   3 pending
--   4 paused
--   5 waitlists: the names of those in which tasks wait
--   6 held
-- ARGV
--   1 taskPrefix
--   2 nowNanos
--   3 count
--   4 waitlist: its name
-- Returns
--   how many were moved (none while the queue is paused), and how many still wait
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall
-- How many entries that no longer wait one call removes.
local MAX_REMOVED = 1000
-- Among how many tasks at the front that were woken before those that are woken now have their place.
local MAX_WOKEN_AHEAD = 64

call('LLEN', KEYS[3])
call('ZCARD', KEYS[2])
call('ZCARD', KEYS[6])
local waiting = call('ZCARD', KEYS[1])
if waiting == 0 then
  call('SREM', KEYS[5], ARGV[4])
  return { 0, 0 }
end
call('SCARD', KEYS[5])
if call('EXISTS', KEYS[4]) == 1 then return { 0, waiting } end

-- Until when it is in `retry`, and since when it waits.
local function waits(id)
  local text = try('HGET', ARGV[1] .. id, 'waits')
  if type(text) == 'string' then return string.match(text, '^(%d+) (%d+)$') end
end

local count, woken, gone, since = tonumber(ARGV[3]), {}, 0, {}
while #woken < count and gone < MAX_REMOVED do
  local id = call('ZPOPMIN', KEYS[1])[1]
  if not id then break end
  call('ZREM', KEYS[6], id)
  local till, from = waits(id)
  if till and till == call('ZSCORE', KEYS[2], id) then
    woken[#woken + 1] = id
    since[id] = tonumber(from)
  else
    gone = gone + 1
  end
end
local left = call('ZCARD', KEYS[1])
if left == 0 then call('SREM', KEYS[5], ARGV[4]) end
if #woken == 0 then return { 0, left } end

-- Those that were woken before are in order, the longest waiting one next: each of these comes behind all that have waited for as long.
local popped = {}
for i = 1, #woken do
  popped[woken[i]] = i
end
table.sort(woken, function(one, other)
  if since[one] == since[other] then return popped[one] < popped[other] end
  return since[one] < since[other]
end)
local ahead = call('LRANGE', KEYS[3], -MAX_WOKEN_AHEAD, -1)
local size = #ahead

-- Whether the task at this place, 1 being the next, waits since then, or for longer.
local function waits_as_long(place, at)
  local id = ahead[size + 1 - place]
  if not since[id] then
    local _, from = waits(id)
    since[id] = from and tonumber(from) or math.huge -- it has never waited
  end
  return since[id] <= at
end

-- How many of the next `most` tasks come before one that waits since then.
local function count_before(most, at)
  local low, high = 0, most
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if waits_as_long(middle, at) then
      low = middle
    else
      high = middle - 1
    end
  end
  return low
end

-- The end of the list from there on: the next one is its last.
local before = count_before(size, since[woken[#woken]])
if before > 0 then call('LTRIM', KEYS[3], 0, -before - 1) end
local line = {}
for i = #woken, 1, -1 do
  local id = woken[i]
  local places = count_before(before, since[id])
  for place = before, places + 1, -1 do
    line[#line + 1] = ahead[size + 1 - place]
  end
  before, line[#line + 1] = places, id
  call('ZREM', KEYS[2], id)
  call('HSET', ARGV[1] .. id, 'state', 'pending', 'pending_since', ARGV[2])
end
for place = before, 1, -1 do
  line[#line + 1] = ahead[size + 1 - place]
end
spread('RPUSH', KEYS[3], line)
return { #woken, left }
