import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Initialized } from './initialize.js'
import type { LauncherSettings } from './settings.js'

/** All that one needs to log in. A generated password is shown when it is made, and later where it lies. */
export async function welcome(
  { address, home }: Pick<LauncherSettings, 'address' | 'home'>,
  { admin }: Pick<Initialized, 'admin'>,
): Promise<string> {
  const [caFile, passwordFile] = [join(home, 'ca.pem'), join(home, 'admin-password')]
  const kept = await access(passwordFile).then(
    () => true,
    () => false,
  )
  const login = ['ziti edge login', address, '-u', word(admin.username)]
  if (admin.password !== undefined) login.push('-p', word(admin.password))
  else if (kept) login.push('-p', `"$(cat ${word(passwordFile)})"`)
  login.push('--ca', word(caFile))
  return `
ready at https://${address}

  administrator  ${admin.username}
  password       ${admin.password ?? (kept ? `in ${passwordFile}` : 'the one that was given')}
  CA bundle      ${caFile}

  ${login.join(' ')}

Ctrl-C stops everything.
`
}

/** As the shell must be given it. */
const word = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
