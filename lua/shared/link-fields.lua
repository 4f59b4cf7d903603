-- The fields of `links`: what they say of tasks of this place. Part of links.lua, behind membership.lua.
--
-- Who watches a task: `r`, how many NULs follow and how long L.hint is (a byte each), those, a run of this place, \0, L.hint and the step,
-- when nobody else watches it; else a JSON list. Behind a `-` are those who know that it has failed; it is kept, and may be run again.
-- Links of steps that ended together are mostly the same up to the step.
do
  local call, try, type = redis.call, redis.pcall, type
  local byte, find, sub = string.byte, string.find, string.sub
  -- What the link of a step, that of a task whose watchers know of its failure, and the id of a member of a batch begin with.
  local STEP, TOLD, BATCH = byte('r'), byte('-'), byte('b')

  -- What `links` has of tasks, as far as this script has read or changed it (false: nothing), and the ids that it has changed.
  local values, changed, changes = {}, {}, 0

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

  -- The tasks of steps that are created now get these links, by position. A task of that id that was watched before is rare.
  function L.link_steps(ids, links, count)
    for first = 1, count, 1000 do
      local last = first + 999 < count and first + 999 or count
      local set, n, found = {}, 0, call('HMGET', L.links, unpack(ids, first, last))
      for i = first, last do
        local id, before = ids[i], found[i - first + 1]
        if values[id] ~= nil or before and byte(before) ~= STEP then
          L.add_link(id, links[i])
        else
          set[n + 1], set[n + 2] = id, links[i]
          n = n + 2
        end
      end
      for from = 1, n, 1000 do
        call('HSET', L.links, unpack(set, from, from + 999 < n and from + 999 or n))
      end
    end
    L.has_links = true
  end

  -- What is known of a link without a look: nil when it has not been read.
  function L.known_link(id)
    return values[id]
  end

  -- Redis keeps a hash of up to 512 short values in a list, and searches it from end to end: no value is short.
  L.TOO_LONG = 65

  -- What a link of a step begins with, 3 bytes and the NULs, by the length of the hint and of what is missing to a link that is long enough.
  local ENOUGH, starts = L.TOO_LONG - 4, {}
  -- The least bytes of a hint: see L.hint.
  local HINT_SIZE = 22

  -- The link of the task of a step of this place. `hint`: L.hint.
  function L.step_link(run, step, hint)
    local size = #hint
    local missing = ENOUGH - #run - #step - size
    local kind = missing > 0 and missing * 256 + size or size
    local start = starts[kind]
    if not start then
      if missing < 0 then missing = 0 end
      start = 'r' .. string.char(missing, size) .. string.rep('\0', missing)
      starts[kind] = start
    end
    return start .. run .. '\0' .. hint .. step
  end

  -- The run, the step, L.hint, and the position of the step; nil of what is no link of a step.
  function L.read_step_link(link)
    local first, more, size = byte(link, 1, 3)
    if first ~= STEP or not size or size < HINT_SIZE then return nil end
    local stop = find(link, '\0', more + 4, true)
    if not stop then return nil end
    local at = stop + size + 1
    if at > #link + 1 then return nil end
    return sub(link, more + 4, stop - 1), sub(link, at), sub(link, stop + 1, at - 1), at
  end

  function L.result_of(id, result)
    if result and result ~= '' then return result end
    local stored = try('HGET', L.task_prefix .. id, 'result')
    return type(stored) == 'string' and stored or ''
  end

  -- What tasks of steps have reported to their runs, by run: the id of the first task, and three values each, step, L.hint, result; and the
  -- ids of the runs.
  L.successes, L.successful_runs = {}, {}

  -- The first `count` of these tasks have ended; those with false, or a text as their result, in `details` have just succeeded. Deals with
  -- members of batches and steps of runs among those that nobody else watches: most linked tasks. Returns the others that have links, and
  -- their details. Call it before their hashes are deleted.
  function L.take_successes(ids, details, count)
    for i = 1, count do
      if byte(ids[i]) == BATCH then
        ids, details, count = L.take_members(ids, details, count)
        break
      end
    end
    local successes, runs, read_step_link = L.successes, L.successful_runs, L.read_step_link
    local others, left, n = {}, {}, 0
    -- What the link before began with, up to the step, when it was of the same run as the one before that; its parts and list.
    local head, size, run, hint, list, length = false, 0, nil, nil, nil, 0
    for first = 1, count, 1000 do
      local last = first + 999 < count and first + 999 or count
      local found, gone, m = call('HMGET', L.links, unpack(ids, first, last)), {}, 0
      for i = first, last do
        local id, link, detail, step, at = ids[i], found[i - first + 1], details[i], nil, nil
        if link and (not detail or type(detail) == 'string') then
          if head and find(link, head, 1, true) == 1 then
            step = sub(link, size + 1)
          else
            local before = run
            run, step, hint, at = read_step_link(link)
            head = run and run == before and sub(link, 1, at - 1)
            if head then size = at - 1 end
          end
        end
        if step then
          m = m + 1
          gone[m] = id
          if not head or at then
            list = successes[run]
            if not list then
              list = { id, nil, nil, nil }
              successes[run], runs[#runs + 1] = list, run
            end
            length = #list
          end
          list[length + 1], list[length + 2], list[length + 3] = step, hint, detail or L.result_of(id)
          length = length + 3
        elseif link or byte(id) == BATCH then
          n = n + 1
          others[n], left[n], values[id] = id, detail, link
        end
      end
      if m > 0 then call('HDEL', L.links, unpack(gone)) end
    end
    return others, left
  end

  -- Who watches the tasks of these leases (score and id of each), packed: once per batch, what the ids of its members begin with, and JSON; then, as a list of its own, a
  -- link or JSON of each task, in order ('' of one that nobody watches but its batch), if there is one. Empty when there is nothing.
  function L.links_of(leases)
    local ids, count = {}, #leases / 2
    if count == 0 or not L.has_links then return '' end
    for i = 1, count do
      ids[i] = leases[2 * i]
    end
    local found, members, any = nil, nil, false
    for first = 1, count, 1000 do
      local last = first + 999 < count and first + 999 or count
      local page = call('HMGET', L.links, unpack(ids, first, last))
      for i = 1, #page do
        local link = page[i]
        if link then
          any = true
          if byte(link) == TOLD then page[i] = sub(link, 2) end
        else
          page[i] = ''
          local id = ids[first + i - 1]
          local batch = byte(id) == BATCH and L.batch_of(id)
          if batch then
            members = members or {}
            members[batch] = true
          end
        end
        if found then found[first + i - 1] = page[i] end
      end
      found = found or page
    end
    if not any and not members then return '' end
    if members then L.load_parts() end
    local batches = {}
    for batch in pairs(members or {}) do
      batches[#batches + 1] = batch .. '~'
      batches[#batches + 1] = cjson.encode({ { k = 'b', to = L.home_of(batch), batch = batch } })
    end
    return cmsgpack.pack(batches, any and found or {})
  end
end
