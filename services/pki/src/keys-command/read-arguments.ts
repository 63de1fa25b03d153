import { parseArgs } from 'node:util'
import { type KeyRole, keyRoles } from '../domain/planned-key.js'

/** What the operator asks for. */
export type KeysRequest =
  | { readonly action: 'help' }
  | { readonly action: 'list'; readonly isJson: boolean }
  | {
      readonly action: 'prepare'
      readonly role: KeyRole
      /** Absent: it is generated. */
      readonly from: string | undefined
      readonly passphraseFile: string | undefined
    }
  | { readonly action: 'activate'; readonly role: KeyRole; readonly force: boolean }
  | { readonly action: 'retire'; readonly id: string; readonly force: boolean }

const options = {
  from: { type: 'string' },
  'passphrase-file': { type: 'string' },
  force: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean' },
} as const
type Option = keyof typeof options

const optionsOf: Readonly<Record<string, readonly Option[]>> = {
  list: ['json'],
  prepare: ['from', 'passphrase-file'],
  activate: ['force'],
  retire: ['force'],
}

/** Throws an Error that says which argument is wrong. */
export function readKeysArguments(args: readonly string[]): KeysRequest {
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
  if (values.help) return { action: 'help' }
  const [action = 'list', ...operands] = positionals
  const allowed = optionsOf[action]
  if (!allowed) throw new Error(`'${action}' is not one of prepare, activate and retire`)
  const given = Object.keys(values) as Option[]
  const misplaced = given.find((option) => !allowed.includes(option))
  if (misplaced)
    throw new Error(`--${misplaced} has no meaning ${action === 'list' ? 'here' : `with ${action}`}`)
  if (action === 'list') {
    if (operands.length > 0) throw new Error('the list takes no arguments')
    return { action, isJson: values.json ?? false }
  }
  const [operand, ...more] = operands
  const what = action === 'retire' ? 'the ID of a key' : `one of ${keyRoles.join(', ')}`
  if (operand === undefined || more.length > 0) throw new Error(`${action} takes one argument: ${what}`)
  const force = values.force ?? false
  if (action === 'retire') return { action, id: operand, force }
  const role = keyRoles.find((one) => one === operand)
  if (!role) throw new Error(`${action}: '${operand}' is not ${what}`)
  if (action === 'activate') return { action, role, force }
  const { from, 'passphrase-file': passphraseFile } = values
  if (passphraseFile !== undefined && from === undefined)
    throw new Error('--passphrase-file has no meaning without --from')
  return { action: 'prepare', role, from, passphraseFile }
}
