import { openLog, readSettings } from '@overlay/process'
import { withTlsDirectory } from '@overlay/store/postgres'
import { keysUsage, readKeysArguments, runKeysCommand } from './keys-command/run-keys-command.js'
import { initSettings, tokenKeyRulesOf } from './settings.js'

const command = 'node services/pki/dist/pki-keys.js'

try {
  const request = readKeysArguments(process.argv.slice(2))
  if (request.action === 'help') process.stdout.write(`${keysUsage(command)}\n`)
  else {
    const { logFormat: format, ...settings } = readSettings(initSettings, process.env)
    await runKeysCommand({
      ...settings,
      databaseUrl: withTlsDirectory(settings.databaseUrl, settings.databaseTls),
      request,
      command,
      tokenKeyRules: tokenKeyRulesOf(settings),
      addresses: [settings.address, settings.ctrlAddress],
      operator: 'pki-keys',
      print: (line) => process.stdout.write(`${line}\n`),
      log: openLog('pki', { level: 'silent', format }),
    })
  }
} catch (err) {
  process.stderr.write(`keys not changed: ${(err as Error).message}\n`)
  process.exitCode = 1
}
