import { ownProcess } from '@overlay/platform/part'
import { endProcess } from '@overlay/platform/process'
import { runIdentity } from './run.js'

await runIdentity(process.env, `${import.meta.dirname}/../migrations`, ownProcess)
endProcess()
