import { setting, type Values } from '@overlay/process'
import type { KeySource } from './read-key-files.js'

const providedKey = (env: string, what: string) =>
  setting
    .text(
      env,
      `[Your own](operations.md#keys-of-your-own) ${what}: a directory or a file; if not set, it is generated`,
    )
    .optional()
const passphraseFile = (env: string) =>
  setting.text(`${env}_PASSPHRASE_FILE`, `File with the passphrase of \`${env}\``).optional()

/** The keys that an operator provides. */
export const providedKeySettings = {
  signingKey: providedKey('OVERLAY_SIGNING_KEY', 'signing authority'),
  signingKeyPassphraseFile: passphraseFile('OVERLAY_SIGNING_KEY'),
  serverKey: providedKey('OVERLAY_SERVER_KEY', 'key and certificate of the servers'),
  serverKeyPassphraseFile: passphraseFile('OVERLAY_SERVER_KEY'),
  tokenKey: providedKey('OVERLAY_TOKEN_KEY', 'RSA key for tokens of OpenID Connect'),
  tokenKeyPassphraseFile: passphraseFile('OVERLAY_TOKEN_KEY'),
}

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
