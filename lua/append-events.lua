-- Appends to a stream of events: EventsRole.appendEvents.
--
-- KEYS
--   1 eventStream
-- ARGV
--   1 nowMillis: milliseconds; where the newest entry is later, numbering goes on from it
--   2 most: about how many entries are kept
--   3 keepFor: seconds
--   4 replaces: the id of an entry to remove; empty: none
--   5… entries
-- Returns
--   the id of the last entry

local call = redis.call

local milliseconds, number = tonumber(ARGV[1]), -1
local newest = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if newest then
  local time, count = string.match(newest[1], '^(%d+)-(%d+)$')
  if tonumber(time) >= milliseconds then
    milliseconds, number = tonumber(time), tonumber(count)
  end
end
local id
for i = 5, #ARGV do
  number = number + 1
  id = string.format('%.0f-%.0f', milliseconds, number)
  call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], id, 'e', ARGV[i])
end
-- Last, as the newest entry must stay: the next one is numbered after it.
if ARGV[4] ~= '' then
  call('XDEL', KEYS[1], ARGV[4])
end
call('EXPIRE', KEYS[1], ARGV[3])
return id
