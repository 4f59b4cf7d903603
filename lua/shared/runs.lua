-- Runs of workflows: the handlers of their bodies, part of links.lua.
do
  -- A step watches the task of its own: `w` is { k = 'r', to, run, step }.
  L.tell.r = function(w, _, ok, why, result)
    local body = { kind = 'step', run = w.run, step = w.step, ok = ok, why = why, at = L.seconds }
    L.post(w.to, 'step ' .. w.run .. ' ' .. w.step, body, result)
  end
end
