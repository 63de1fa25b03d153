import { openLog, readSettings } from '@overlay/platform/process'
import { initPki } from './init.js'
import { initSettings, tokenKeyRulesOf } from './settings.js'

const { logLevel: level, logFormat: format, ...settings } = readSettings(initSettings, process.env)
const provided = { paths: settings, tokenKeyRules: tokenKeyRulesOf(settings) }
const { caPem } = await initPki({ ...settings, provided, log: openLog('pki', { level, format }) })
process.stdout.write(`${JSON.stringify({ caPem })}\n`)
