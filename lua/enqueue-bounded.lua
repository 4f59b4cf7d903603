-- What enqueue.lua does, while fewer tasks than a number are pending: ProducerRole.enqueueBounded.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 groups
--   4… as enqueue.lua
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 resent
--   5 routes
--   6… as enqueue.lua; then the number
-- Returns
--   as enqueue.lua, with the status 3 for a task without room; then how many are pending now

local note_rows, F
local before = redis.call('LLEN', KEYS[1])
local room = tonumber(table.remove(ARGV)) - before
-- Includes shared/enqueue.lua
