import { ownProcess } from '@overlay/platform/part'
import { endProcess } from '@overlay/platform/process'
import { runPolicy } from './run.js'

await runPolicy(process.env, `${import.meta.dirname}/../migrations`, ownProcess)
endProcess()
