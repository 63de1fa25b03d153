import { keysUsage, readKeysArguments, runKeysCommand } from '@overlay/pki/keys-command'
import { tokenKeyRulesOf } from '@overlay/pki/settings'
import { openLog } from '@overlay/process'
import { requireInstallation } from '../home/installation.js'
import { requireOwnSchema, roleUrl } from '../servers/schemas.js'
import { readLauncherSettings } from '../settings/settings.js'
import { operator, runCommand } from './run-command.js'
import { withDatabase } from './with-database.js'

const command = 'npm run keys --'

await runCommand('keys not changed', async () => {
  const request = readKeysArguments(process.argv.slice(2))
  if (request.action === 'help') return console.log(keysUsage(command))
  const settings = readLauncherSettings(process.env)
  const secrets = await requireInstallation(settings.home)
  await withDatabase(
    settings,
    () => undefined,
    async (ownerUrl) => {
      await requireOwnSchema(ownerUrl, 'pki', secrets)
      await runKeysCommand({
        request,
        command,
        databaseUrl: roleUrl(ownerUrl, 'pki', secrets),
        keySecret: secrets.keySecrets.pki,
        tokenKeyRules: tokenKeyRulesOf(settings),
        addresses: [settings.address, settings.ctrlAddress],
        operator: operator(),
        print: (line) => console.log(line),
        log: openLog('launcher', { level: 'silent', format: 'json' }),
      })
    },
  )
})
