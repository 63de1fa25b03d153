import { openLog, readSettings, runProgram } from '@overlay/process'
import { withTlsDirectory } from '@overlay/store/postgres'
import { initPki } from './init.js'
import { initSettings, tokenKeyRulesOf } from './settings.js'

await runProgram('pki', async () => {
  const { logLevel: level, logFormat: format, ...settings } = readSettings(initSettings, process.env)
  const provided = { paths: settings, tokenKeyRules: tokenKeyRulesOf(settings) }
  const databaseUrl = withTlsDirectory(settings.databaseUrl, settings.databaseTls)
  const options = { ...settings, databaseUrl, provided, log: openLog('pki', { level, format }) }
  const { caPem } = await initPki(options)
  process.stdout.write(`${JSON.stringify({ caPem })}\n`)
})
