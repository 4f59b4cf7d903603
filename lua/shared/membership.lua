-- Members of batches, as this place knows them by their ids. Part of links.lua.
do
  local call, byte, find, sub = redis.call, string.byte, string.find, string.sub
  -- What the id of a member begins with.
  local BATCH = byte('b')

  -- What `links` says of a batch by its id: 1, or w when somebody watches a member of its own accord; false when this place has
  -- nothing of it. Mostly, many tasks of one script are of one batch.
  local batches = {}

  local prefix, prefix_length, prefix_batch, prefix_known

  -- The batch that a task is a member of, its number, and whether somebody watches members. nil when it is none, or when this
  -- place has nothing of the batch.
  function L.member_of(id)
    if prefix and find(id, prefix, 1, true) == 1 then
      return prefix_batch, tonumber(sub(id, prefix_length + 1)), prefix_known == 'w'
    end
    if not L.has_links or string.sub(id, 1, 6) ~= 'batch-' then return nil end
    local batch, number = string.match(id, '^(batch%-[^~]+)~(%d+)$')
    if not batch then return nil end
    local known = batches[batch]
    if known == nil then
      known = call('HGET', L.links, batch)
      -- Else it is the link of a task with such an id.
      if known ~= '1' and known ~= 'w' then known = false end
      batches[batch] = known
    end
    if not known then return nil end
    prefix, prefix_length, prefix_batch, prefix_known = batch .. '~', #batch + 1, batch, known
    return batch, tonumber(number), known == 'w'
  end

  -- The batch, and no more.
  function L.batch_of(id)
    return prefix and find(id, prefix, 1, true) == 1 and prefix_batch or L.member_of(id)
  end

  -- The first `count` of these tasks have ended; those with nothing (false) in `details` have just succeeded. Deals with the members among
  -- those that nobody else watches: most tasks of a queue with a large batch. Returns the others, their details and number.
  function L.take_members(ids, details, count)
    local others, left, n = {}, {}, 0
    local numbers, batch
    for i = 1, count do
      local id = ids[i]
      if not details[i] and byte(id) == BATCH and L.batch_of(id) and prefix_known ~= 'w' then
        if batch ~= prefix_batch then
          batch = prefix_batch
          numbers = L.ended_members(batch).ok
        end
        numbers[#numbers + 1] = tonumber(sub(id, prefix_length + 1))
      else
        n = n + 1
        others[n], left[n] = id, details[i]
      end
    end
    return others, left, n
  end

  -- This place begins or ends to have something of the batch.
  function L.note_batch(batch, present)
    batches[batch], prefix = nil, nil
    if present then
      call('HSETNX', L.links, batch, '1')
      L.has_links = true
    else
      call('HDEL', L.links, batch)
    end
  end

  -- Somebody watches this task of its own accord, also when it is a member.
  function L.note_watched(id)
    local batch = L.member_of(id)
    if not batch then return end
    call('HSET', L.links, batch, 'w')
    batches[batch], prefix = 'w', nil
  end
end
