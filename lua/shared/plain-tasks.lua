-- New tasks of this place with nothing special: those of most steps. Part of links.lua, behind link-fields.lua.
do
  local call = redis.call

  -- The ids of those that became pending in this script.
  L.fresh = {}

  -- Also those that became pending in this script are in the list then.
  function L.push_pending()
    local fresh = L.fresh
    if #fresh == 0 then return end
    for first = 1, #fresh, 1000 do
      call('LPUSH', L.pending, unpack(fresh, first, math.min(first + 999, #fresh)))
    end
    L.fresh = {}
  end

  -- Creates tasks of steps with nothing special, as far as there is none with such an id. `list` has five values for each, `length` in
  -- all: id, link, message, the id of the run, the step. Calls `refused` with run, step and status of each that is not created.
  function L.create_plain(list, length, refused)
    local ids, keys, n, prefix = {}, {}, 0, L.task_prefix
    for i = 1, length, 5 do
      local id = list[i]
      n = n + 1
      ids[n], keys[n] = id, prefix .. id
    end
    local absent = true
    for first = 1, n, 1000 do
      absent = absent and call('EXISTS', unpack(keys, first, first + 999 < n and first + 999 or n)) == 0
    end
    local fresh, now, values = L.fresh, L.now_nanos, L.values
    local watched = absent and L.read_links(ids, n)
    for i = 1, n do
      local id, at = ids[i], 5 * i
      -- Somebody has watched a task of this id before, say.
      if not absent or watched and watched[id] or values[id] ~= nil then
        local status = L.guard(L.create, { id = id, link = list[at - 3], message = list[at - 2], is_absent = absent })
        if status ~= 'enqueued' then refused(list[at - 1], list[at], status) end
      else
        call('HSET', keys[i], 'msg', list[at - 2], 'state', 'pending', 'pending_since', now, 'step', list[at - 3])
        fresh[#fresh + 1] = id
      end
    end
  end
end
