import { join } from 'node:path'
import * as files from '../home/home-files.js'
import { type LauncherSettings, launcherSettings } from '../settings/settings.js'
import { exists } from '../system/files.js'
import type { Admin, InitialCredentials } from './initialize.js'

/**
 * How to log in. A terminal shows a password when it is generated; afterwards, and in the logs of a service manager, its
 * file is named.
 */
export async function welcome(
  { address, home }: Pick<LauncherSettings, 'address' | 'home'>,
  { admin }: Pick<InitialCredentials, 'admin'>,
  { isTerminal }: { readonly isTerminal: boolean },
): Promise<string> {
  const [caFile, passwordFile] = [join(home, files.caFile), join(home, files.passwordFile)]
  const hasFile = await exists(passwordFile)
  const login = ['ziti edge login', address, '-u', quoteWord(admin.username)]
  const shown = isTerminal ? admin.password : undefined
  if (shown !== undefined) login.push('-p', quoteWord(shown))
  else if (hasFile) login.push('-p', `"$(cat ${quoteWord(passwordFile)})"`)
  login.push('--ca', quoteWord(caFile))
  const password = admin.created
    ? 'the one that was given'
    : 'as in the database; npm run admin-password sets a new one'
  return `
ready at https://${address}

  administrator  ${admin.username}
  password       ${shown ?? (hasFile ? `in ${passwordFile}` : password)}
  CA bundle      ${caFile}

  ${login.join(' ')}

Ctrl-C stops everything.
`
}

/** Names settings that are without effect because the administrator exists. */
export function ignoredCredentials(
  { adminUsername, adminPassword }: Pick<LauncherSettings, 'adminUsername' | 'adminPassword'>,
  { created, username }: Pick<Admin, 'created' | 'username'>,
): string[] {
  if (created) return []
  const exists = `ignored: the administrator ${username} exists`
  const isNamed = adminUsername !== username && adminUsername !== launcherSettings.adminUsername.otherwise
  return [
    ...(isNamed ? [`OVERLAY_ADMIN_USERNAME is ${exists}`] : []),
    ...(adminPassword !== undefined
      ? [`OVERLAY_ADMIN_PASSWORD is ${exists}; npm run admin-password sets a new password`]
      : []),
  ]
}

/** Quotes a word for the shell. */
const quoteWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
