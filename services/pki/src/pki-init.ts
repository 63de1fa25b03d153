import { openLog, readSettings } from '@overlay/platform/process'
import { initPki } from './init.js'
import { initSettings } from './settings.js'

const { logLevel: level, logFormat: format, ...settings } = readSettings(initSettings, process.env)
const { caPem } = await initPki({ ...settings, log: openLog('pki', { level, format }) })
process.stdout.write(`${JSON.stringify({ caPem })}\n`)
