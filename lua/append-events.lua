-- Appends to the stream of events: EventStreamBroker.appendEvents.
--
-- KEYS
--   1 eventStream
-- ARGV
--   1 nowMillis: milliseconds; entries are numbered on from the newest where that is later
--   2 most: about how many are kept
--   3 keepFor: seconds
--   4… entries
-- Returns
--   nothing

local call = redis.call

local milliseconds, number = tonumber(ARGV[1]), -1
local newest = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if newest then
  local time, count = string.match(newest[1], '^(%d+)-(%d+)$')
  if tonumber(time) >= milliseconds then
    milliseconds, number = tonumber(time), tonumber(count)
  end
end
for i = 4, #ARGV do
  number = number + 1
  call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], string.format('%.0f-%.0f', milliseconds, number), 'e', ARGV[i])
end
call('EXPIRE', KEYS[1], ARGV[3])
return nil
