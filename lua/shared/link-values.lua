-- What `links` has of tasks, as far as this script has read or changed it. Part of links.lua, behind parts.lua.
do
  local call = redis.call

  -- By id (false: nothing), and the ids that were changed.
  local values, changed, changes = L.values, {}, 0

  function L.link_of(id)
    local value = values[id]
    if value == nil then
      value = L.has_links and call('HGET', L.links, id)
      values[id] = value
    end
    return value
  end

  -- `value` is stored by L.write_links; false: the task has no link any more.
  function L.set_link(id, value)
    changes = changes + 1
    changed[changes] = id
    values[id] = value
    if value then L.has_links = true end
  end

  -- One that was changed twice is written twice, as it is now.
  function L.write_links()
    if changes == 0 then return end
    local set, gone, n, m = {}, {}, 0, 0
    for i = 1, changes do
      local id = changed[i]
      local value = values[id]
      if value then
        set[n + 1], set[n + 2] = id, value
        n = n + 2
      else
        m = m + 1
        gone[m] = id
      end
    end
    changed, changes = {}, 0
    for first = 1, n, 1000 do
      call('HSET', L.links, unpack(set, first, math.min(first + 999, n)))
    end
    for first = 1, m, 1000 do
      call('HDEL', L.links, unpack(gone, first, math.min(first + 999, m)))
    end
  end

  -- What is known of a link without a look: nil when it has not been read.
  function L.known_link(id)
    return values[id]
  end
end
