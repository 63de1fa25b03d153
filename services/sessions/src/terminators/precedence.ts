import { edgeErrorCode, TerminatorPrecedence } from '@overlay/channel'
import { AccessRefused } from '../domain/router-access.js'
import type { Precedence } from '../domain/terminator-selection.js'

const names: Readonly<Partial<Record<TerminatorPrecedence, Precedence>>> = {
  [TerminatorPrecedence.DEFAULT]: 'default',
  [TerminatorPrecedence.REQUIRED]: 'required',
  [TerminatorPrecedence.FAILED]: 'failed',
}

/** Throws AccessRefused for a value that does not exist. */
export function precedenceOf(precedence: TerminatorPrecedence): Precedence {
  const name = names[precedence]
  if (!name) throw new AccessRefused(edgeErrorCode.invalidPrecedence, `invalid precedence: ${precedence}`)
  return name
}
