-- Creates tasks of rows of an outbox, all of one queue, once: RowsRole.enqueue.
-- Numbers of a sender only grow. What has a number that is not above the highest of its sender here came by an earlier call.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 groups
--   4… as enqueue.lua; then senders
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 resent: '0'
--   5 routes: as enqueue.lua
--   6… as enqueue.lua; then the sender, the number of the first row, of the last
-- Returns
--   as enqueue.lua; or, when an earlier call has brought the first row, the number of the last one that did: nothing is done

local last, first, sender = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
local senders = table.remove(KEYS)
local highest = redis.call('HGET', senders, sender)
if highest and tonumber(highest) >= tonumber(first) then return highest end
local room, before, F
local function note_rows()
  redis.call('HSET', senders, sender, last)
end
-- Includes shared/enqueue.lua
