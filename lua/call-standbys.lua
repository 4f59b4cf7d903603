-- Calls the next standbys of a crew, twice as many parts as before, until all were called in this window: SeatsRole.call.
-- What was called is stored before it is said: a call that is lost, or refused, is found there.
--
-- KEYS
--   1 crewCalled
-- ARGV
--   1 start: the first part, if none was called
--   2 parts: how many there are
--   3 window: milliseconds
--   4 channel: the beginning of the name of each part's
-- Returns
--   0 when there are more to call, else how many milliseconds the window lasts

local call = redis.call
local parts = tonumber(ARGV[2])
local start, count = string.match(call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
local done = tonumber(count or 0)
if done >= parts then return math.max(1, call('PTTL', KEYS[1])) end

start = start or ARGV[1]
local most = math.min(parts, math.max(1, 2 * done))
local value = string.format('%s %d', start, most)
if done > 0 then call('SET', KEYS[1], value, 'KEEPTTL') else call('SET', KEYS[1], value, 'PX', ARGV[3]) end
for part = done, most - 1 do
  redis.pcall('PUBLISH', ARGV[4] .. (start + part) % parts, 'work')
end
return most < parts and 0 or math.max(1, call('PTTL', KEYS[1]))
