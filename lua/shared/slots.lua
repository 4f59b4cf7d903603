-- Divides the tasks that were given a slot of their key: those that have it, and those whose servers are dead, or Go servers that have
-- ended them. `drawn`: those that have had their turn in this call, or nil.
-- A slot is free so long after the end of the lease of its task, as for the recoverer.
local SLOT_GRACE_SECONDS = 30

-- Whether a task in `pending` has had its turn: nobody has made it pending again since.
local function has_turn(key)
  local fields = redis.pcall('HMGET', key, 'turn', 'pending_since', 'state')
  return fields[1] and fields[1] == fields[2] and fields[3] == 'pending'
end

local function divide_slots(ids, lease_key, task_prefix, now_seconds, drawn)
  local taken, free = {}, {}
  for first = 1, #ids, 1000 do
    local last = math.min(first + 999, #ids)
    local ends = redis.call('ZMSCORE', lease_key, unpack(ids, first, last))
    for i = first, last do
      local lease, id = tonumber(ends[i - first + 1] or ''), ids[i]
      local is_over = lease and lease + SLOT_GRACE_SECONDS < now_seconds
      if is_over or not lease and not (drawn and drawn[id]) and not has_turn(task_prefix .. id) then
        free[#free + 1] = id
      else
        taken[#taken + 1] = id
      end
    end
  end
  return taken, free
end
