import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { userName } from './home-directory.js'
import { secretsFile } from './home-files.js'
import { readSecrets, type Secrets } from './secrets.js'

/**
 * The secrets of the installation in a home, for commands beside the product. Throws if there is none, or if it belongs
 * to another user: the next start would refuse files of this one.
 */
export async function requireInstallation(home: string): Promise<Secrets> {
  const missing = `no installation in ${home}: set OVERLAY_HOME`
  const { uid } = await stat(home).catch((cause: unknown) => {
    throw new Error(missing, { cause })
  })
  const own = process.getuid?.() ?? uid
  if (uid !== own)
    throw new Error(
      `OVERLAY_HOME ${home} belongs to ${userName(uid)}: run this as its owner, not as ${userName(own)}`,
    )
  const stored = await readSecrets(join(home, secretsFile))
  if (!stored) throw new Error(missing)
  return stored.secrets
}
