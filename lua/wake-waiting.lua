-- Puts tasks that wait in a line for a limit to the front of their queue, the longest waiting one first: LimitingBroker.wakeWaiting.
-- A task that has left the retry set since, or stands there for another time, no longer waits: its place is cleared away.
--
-- KEYS
--   1 waiting
--   2 retry
--   3 pending
-- ARGV
--   1 taskPrefix
--   2 nowNanos
--   3 count
-- Returns
--   how many were put there, and how many still wait

local call, try = redis.call, redis.pcall
-- How many places without a task are cleared away in one call.
local MOST_GONE = 1000

call('LLEN', KEYS[3])
call('ZCARD', KEYS[2])

local count, woken, gone = tonumber(ARGV[3]), {}, 0
while #woken < count and gone < MOST_GONE do
  local place = call('ZPOPMIN', KEYS[1])
  local id = place[1]
  if not id then break end
  local waits, score = try('HGET', ARGV[1] .. id, 'waits'), call('ZSCORE', KEYS[2], id)
  if score and type(waits) == 'string' and string.match(waits, '^%d+') == score then
    woken[#woken + 1] = id
  else
    gone = gone + 1
  end
end
for i = #woken, 1, -1 do
  call('ZREM', KEYS[2], woken[i])
  call('HSET', ARGV[1] .. woken[i], 'state', 'pending', 'pending_since', ARGV[2])
  call('RPUSH', KEYS[3], woken[i])
end
return { #woken, call('ZCARD', KEYS[1]) }
