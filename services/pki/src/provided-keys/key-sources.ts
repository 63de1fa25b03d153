import type { Values } from '@overlay/process'
import { providedKeySettings } from '../settings.js'
import type { KeySource } from './files.js'

/** A key that the settings name. */
export interface ProvidedSource extends KeySource {
  readonly role: 'signing' | 'server' | 'token'
}

export type ProvidedKeyPaths = Partial<Values<typeof providedKeySettings>>

/** The keys that the settings name, in the order in which they depend on each other. */
export function providedSources(paths: ProvidedKeyPaths): readonly ProvidedSource[] {
  const of = (
    role: ProvidedSource['role'],
    key: 'signingKey' | 'serverKey' | 'tokenKey',
  ): readonly ProvidedSource[] => {
    const path = paths[key]
    const file = `${key}PassphraseFile` as const
    const names = { path: providedKeySettings[key].env, passphraseFile: providedKeySettings[file].env }
    return path === undefined ? [] : [{ role, path, passphraseFile: paths[file], names }]
  }
  return [...of('signing', 'signingKey'), ...of('server', 'serverKey'), ...of('token', 'tokenKey')]
}
