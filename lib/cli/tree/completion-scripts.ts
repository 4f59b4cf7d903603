import { PROGRAM } from '../output/words.js';

/*
 * The scripts that `completion` prints. They pass the line on to `__complete`, which prints a line for each candidate: the
 * candidate, a tab and its meaning (complete.ts).
 */

/** Splits the line at white space only: bash also splits at `:` and `=`, and replaces only the part after them. */
const BASH = `# bash completion for ${PROGRAM}; to have it in every shell, add to ~/.bashrc: source <(${PROGRAM} completion bash)
_nestjs_asynq() {
  local line=\${COMP_LINE:0:COMP_POINT} answer current kept
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  current=\${words[\${#words[@]} - 1]}
  kept=\${current##*[:=]}
  COMPREPLY=()
  while IFS= read -r answer; do
    answer=\${answer%%$'\\t'*}
    COMPREPLY+=("\${answer#"\${current%"$kept"}"}")
  done < <("\${words[0]}" __complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -o default -F _nestjs_asynq ${PROGRAM}
`;

const ZSH = `#compdef ${PROGRAM}
# zsh completion for ${PROGRAM}; to have it in every shell, add to ~/.zshrc after compinit: source <(${PROGRAM} completion zsh)
_nestjs_asynq() {
  local answer
  local -a answers
  for answer in "\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    [[ -n $answer ]] && answers+=("\${\${answer%%$'\\t'*}//:/\\\\:}:\${answer#*$'\\t'}")
  done
  if (( \${#answers} )); then
    _describe '${PROGRAM}' answers
  else
    _files
  fi
}
compdef _nestjs_asynq ${PROGRAM}
`;

const FISH = `# fish completion for ${PROGRAM}; to have it in every shell: ${PROGRAM} completion fish > ~/.config/fish/completions/${PROGRAM}.fish
function __nestjs_asynq_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2> /dev/null
end
complete -c ${PROGRAM} -f -a '(__nestjs_asynq_complete)'
complete -c ${PROGRAM} -l config -r -F
`;

export const COMPLETION_SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
export type Shell = keyof typeof COMPLETION_SCRIPTS;
