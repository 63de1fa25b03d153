import { ownProcess } from '@overlay/platform/part'
import { endProcess } from '@overlay/platform/process'
import { runSessions } from './run.js'

await runSessions(process.env, `${import.meta.dirname}/../migrations`, ownProcess)
endProcess()
