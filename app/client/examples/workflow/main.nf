// Disordered proteins: molrun runs the jobs, Nextflow orders them.
//
//   nextflow run main.nf     results/summary.csv for proteins/*.fasta
//
// A process submits a job and waits for it, which needs no core: executor.queueSize limits
// how many jobs are submitted at a time; the service decides how many of them run.

params.steps = 200000

process simulate {
    executor 'local'
    cpus 1
    tag "${protein.baseName}"
    publishDir "results/${protein.baseName}", mode: 'copy'

    input:
    path protein

    output:
    tuple val(protein.baseName), path('simulated')

    // The name depends only on the input and the settings, so a restarted workflow finds
    // the jobs it has submitted, and a changed input gets a new job.
    script:
    """
    digest=\$( (cat ${protein}; echo ${params.steps}) | sha256sum | cut -c 1-8)
    molrun run cg-idp --name ${protein.baseName}-simulated-\$digest --file fasta=${protein} \\
        --set steps=${params.steps} --download simulated
    """
}

process summary {
    executor 'local'
    publishDir 'results', mode: 'copy'

    input:
    val rows

    output:
    path 'summary.csv'

    script:
    """
    printf '%s\\n' protein,rg_nm,rg_se_nm ${rows.join(' ')} >summary.csv
    """
}

workflow {
    simulated = simulate(channel.fromPath('proteins/*.fasta'))
    figures = simulated.map { name, folder ->
        def m = new groovy.json.JsonSlurper().parse(folder.resolve('metrics.json'))
        "${name},${m.rg_nm},${m.rg_se_nm}"
    }
    summary(figures.collect())
}
