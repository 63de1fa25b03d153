import { join } from 'node:path'
import { exists } from './exists.js'
import type { InitialCredentials } from './initialize.js'
import type { LauncherSettings } from './settings.js'

/** How to log in. Shows a password when it is generated, and its file afterwards. */
export async function welcome(
  { address, home }: Pick<LauncherSettings, 'address' | 'home'>,
  { admin }: Pick<InitialCredentials, 'admin'>,
): Promise<string> {
  const [caFile, passwordFile] = [join(home, 'ca.pem'), join(home, 'admin-password')]
  const hasFile = await exists(passwordFile)
  const login = ['ziti edge login', address, '-u', word(admin.username)]
  if (admin.password !== undefined) login.push('-p', word(admin.password))
  else if (hasFile) login.push('-p', `"$(cat ${word(passwordFile)})"`)
  login.push('--ca', word(caFile))
  return `
ready at https://${address}

  administrator  ${admin.username}
  password       ${admin.password ?? (hasFile ? `in ${passwordFile}` : 'the one that was given')}
  CA bundle      ${caFile}

  ${login.join(' ')}

Ctrl-C stops everything.
`
}

/** Quotes a word for the shell. */
const word = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
