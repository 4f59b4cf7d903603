-- The links of tasks of this place, as far as this script has read or changed them. Part of links.lua, behind parts.lua.
do
  local call, try, byte = redis.call, redis.pcall, string.byte
  local STEP, TOLD = byte('r'), byte('-')

  -- By id (false: nothing), and the ids that were changed.
  local values, changed, changes = L.values, {}, 0
  -- Of which ids the hash of the task has the link.
  local in_hash = {}

  function L.link_of(id)
    local value = values[id]
    if value == nil then
      value = L.has_links and call('HGET', L.links, id)
      if not value and L.has_runs then
        value = try('HGET', L.task_prefix .. id, 'step')
        if type(value) == 'string' then
          in_hash[id] = true
        else
          value = false
        end
      end
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

  -- What the hash of the new task of a step gets as its link; nil when somebody has watched a task of its id before, and so `links` has all.
  function L.new_link(id, link)
    local before = L.has_links and L.link_of(id)
    if before and not L.read_step_link(before) then return L.add_link(id, link) end
    values[id], in_hash[id] = link, true
    return link
  end

  local function is_of_step(link)
    local first, second = byte(link, 1, 2)
    return first == STEP or first == TOLD and second == STEP
  end

  -- One that was changed twice is written twice, as it is now.
  function L.write_links()
    if changes == 0 then return end
    local set, gone, n, m = {}, {}, 0, 0
    for i = 1, changes do
      local id = changed[i]
      local value, key = values[id], L.task_prefix .. id
      if value and is_of_step(value) then
        if call('EXISTS', key) == 1 then call('HSET', key, 'step', value) end
      elseif in_hash[id] then
        try('HDEL', key, 'step')
        in_hash[id] = nil
      end
      if value and not is_of_step(value) then
        set[n + 1], set[n + 2] = id, value
        n = n + 2
      elseif not value then
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
