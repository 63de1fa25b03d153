import type { IncomingMessage } from 'node:http'
import { Fault } from '@overlay/rpc'
import { accepts } from '../http/negotiate.js'

const answers: Readonly<Record<string, 'json' | 'html'>> = {
  'application/json': 'json',
  'text/html': 'html',
  // differs: any type is JSON, not an empty answer
  '*/*': 'json',
  'application/*': 'json',
  'text/*': 'html',
}

/**
 * What a login step answers. wire: the first type counts that is known, whatever its weight.
 * @throws Fault NOT_ACCEPTABLE
 */
export function answerTypeOf({ headers: { accept = '' } }: IncomingMessage): 'json' | 'html' {
  if (accept.trim() === '') return 'json'
  for (const range of accept.split(',')) {
    const answer = answers[range.split(';')[0]?.trim().toLowerCase() ?? '']
    if (answer) return answer
  }
  throw new Fault('NOT_ACCEPTABLE')
}

/** Whether a person looks at the answer. */
export const isBrowser = (incoming: IncomingMessage): boolean => accepts(incoming, 'text/html')
