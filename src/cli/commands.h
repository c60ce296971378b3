// The commands of `ridgeline`, a function each: adds its arguments to the program, and what it does as a callback that
// stores the exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace ridgeline::cli {

void add_train_command(CLI::App& program, int& exit_code);
void add_parity_command(CLI::App& program, int& exit_code);
void add_generate_command(CLI::App& program, int& exit_code);
void add_evaluate_command(CLI::App& program, int& exit_code);
void add_report_command(CLI::App& program, int& exit_code);
void add_explain_command(CLI::App& program, int& exit_code);
void add_config_command(CLI::App& program, int& exit_code);
void add_plan_command(CLI::App& program, int& exit_code);
void add_simulate_command(CLI::App& program, int& exit_code);
void add_project_command(CLI::App& program, int& exit_code);
void add_job_command(CLI::App& program, int& exit_code);
void add_tune_command(CLI::App& program, int& exit_code);
void add_scale_command(CLI::App& program, int& exit_code);
void add_validate_command(CLI::App& program, int& exit_code);
void add_calibrate_command(CLI::App& program, int& exit_code);
void add_data_command(CLI::App& program, int& exit_code);
void add_checkpoint_command(CLI::App& program, int& exit_code);
void add_doctor_command(CLI::App& program, int& exit_code);

}  // namespace ridgeline::cli
