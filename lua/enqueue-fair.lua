-- What enqueue.lua does, of a fair queue: ProducerRole.enqueue. Tasks with a key wait in its line.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 groups
--   4… as enqueue.lua; then those of shared/fair.lua
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 resent
--   5 routes: as enqueue.lua, and f: in the line of its key
--   6… as enqueue.lua, with the share of a task in a line in the place of its time; then those of shared/fair.lua
-- Returns
--   as enqueue.lua

local note_rows, room, before
-- Includes shared/fair.lua
-- Includes shared/enqueue.lua
