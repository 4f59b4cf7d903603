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
-- How many tasks at the front that were woken before are put in order with those that are woken now.
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

local line, ahead = {}, call('LRANGE', KEYS[3], -MAX_WOKEN_AHEAD, -1)
for i = #ahead, 1, -1 do
  local _, from = waits(ahead[i])
  if not from then break end
  since[ahead[i]] = tonumber(from)
  line[#line + 1] = ahead[i]
end
if #line > 0 then call('LTRIM', KEYS[3], 0, -#line - 1) end
for i = 1, #woken do
  call('ZREM', KEYS[2], woken[i])
  call('HSET', ARGV[1] .. woken[i], 'state', 'pending', 'pending_since', ARGV[2])
  line[#line + 1] = woken[i]
end
local place = {}
for i = 1, #line do
  place[line[i]] = i
end
table.sort(line, function(one, other)
  if since[one] == since[other] then return place[one] > place[other] end
  return since[one] > since[other]
end)
spread('RPUSH', KEYS[3], line)
return { #woken, left }
