-- What enqueue-unique-rows.lua does; without the key senders, what enqueue-unique.lua does.

local senders, last, first, sender
if #KEYS % 2 == 1 then -- four, two of each task, senders
  senders, last, first, sender = table.remove(KEYS), table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
  local highest = redis.call('HGET', senders, sender)
  if highest and tonumber(highest) >= tonumber(first) then return highest end
end
local function enqueue_rows()
  -- Includes shared/enqueue-unique.lua
end
local result = enqueue_rows()
if senders and result then redis.call('HSET', senders, sender, last) end
return result
