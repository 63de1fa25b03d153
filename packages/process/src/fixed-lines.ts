import { cleanText, isSecretName } from './redact.js'

/** A value of a line. Undefined members are left out. */
export type Fact = string | number | true | undefined

/** Writes a line with these values. */
export type WriteFacts<N extends string> = (facts: Readonly<Record<N, Fact>>) => void

/**
 * Lines of one message whose members have fixed names, for what is logged so often that the usual way costs too much.
 * Since no name is that of a secret, and values are not objects, there is nothing to redact but passwords in URLs and
 * private keys.
 * Throws if a name is that of a secret.
 */
export function fixedLines<N extends string>(
  { service, level, message }: { readonly service: string; readonly level: string; readonly message: string },
  names: readonly N[],
  write: (line: string) => void,
): WriteFacts<N> {
  const secret = names.find(isSecretName)
  if (secret !== undefined) throw new Error(`a line cannot have the member ${secret}`)
  const begin = `{"level":${JSON.stringify(level)},"time":"`
  const middle = `","service":${JSON.stringify(service)}`
  const members = names.map((name) => [name, `,${JSON.stringify(name)}:`] as const)
  const end = `,"msg":${JSON.stringify(message)}}\n`
  return (facts) => {
    let line = begin + now() + middle
    for (const [name, member] of members) {
      const fact = facts[name]
      if (fact !== undefined) line += member + textOf(fact)
    }
    write(line + end)
  }
}

/** All that needs neither quoting nor a look at its contents. A colon may belong to a URL. */
const NEEDS_CARE = /[^ !#-9;-[\]-~]/

function textOf(fact: string | number | true): string {
  if (typeof fact === 'string') return NEEDS_CARE.test(fact) ? JSON.stringify(cleanText(fact)) : `"${fact}"`
  return Number.isNaN(fact) || fact === Infinity || fact === -Infinity ? 'null' : String(fact)
}

let lastMs = Number.NaN
let lastText = ''

/** The time as ISO 8601. Many lines have the same. */
function now(): string {
  const ms = Date.now()
  if (ms !== lastMs) {
    lastMs = ms
    lastText = new Date(ms).toISOString()
  }
  return lastText
}
