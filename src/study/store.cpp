#include "study/store.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "core/error.h"

namespace ridgeline::study {
namespace {

constexpr const char* kFormat = "2";
constexpr const char* kTables = R"sql(
  create table study (name text primary key, value text not null);
  create table sessions (id integer primary key, started_at real not null, seen_at real not null);
  create table trials (
    number integer primary key, point text not null, predicted_costs text not null, predicted_bytes real,
    asked_at real not null, place integer unique, ended_at real, outcome text, costs text,
    peak_bytes real, missing_bytes real, message text, inherited text not null default '');
  create table runs (
    id integer primary key, trial integer not null references trials (number), purpose text not null,
    round integer not null, nodes integer not null, started_at real not null, handle text not null default '',
    ended_at real, outcome text, step_seconds text, dropped integer, peak_bytes real, missing_bytes real,
    watts real, message text, log_tail text);
  create table earlier (point text not null, log_cost real, log_peak real);
)sql";

std::string list_text(const std::vector<double>& values) { return nlohmann::json(values).dump(); }

std::vector<double> list_of(const std::string& text, const std::string& path) {
  if (text.empty()) return {};
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_array()) throw Failure("{}: '{}' is no list of numbers: the file was changed by hand", path, text);
  std::vector<double> values;
  for (const auto& value : parsed) values.push_back(value.is_number() ? value.get<double>() : 0.0);
  return values;
}

std::string new_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::string text_of(Purpose purpose) { return purpose == Purpose::search ? "search" : "confirm"; }

// The first line of one that the other has otherwise.
std::string first_difference(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before), new_lines(now);
  std::string was, is;
  while (true) {
    const bool has_old = static_cast<bool>(std::getline(old_lines, was));
    const bool has_new = static_cast<bool>(std::getline(new_lines, is));
    if (!has_old && !has_new) return "";
    if (!has_old) was = "nothing";
    if (!has_new) is = "nothing";
    if (was != is) return fmt::format("{} (was {})", is, was);
  }
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

StudyStore::StudyStore(const std::string& path, const std::string& identity,
                       const std::function<Beginning()>& beginning)
    : database_(path, Database::Use::write) {
  // What a process wrote survives its death in every mode; this one leaves out what only a power cut would ask for.
  database_.execute("pragma synchronous = normal");
  Transaction transaction(database_);
  if (Statement tables = database_.prepare("select count(*) from sqlite_master"); tables.step() && tables.integer(0) == 0) {
    make(identity, beginning ? beginning() : Beginning());
  }
  check_format();
  if (const std::string difference = first_difference(this->identity(), identity); !difference.empty()) {
    throw InputError(
        "{}: was begun by another study: {}; its trials cannot be compared. Give the new study a file of its own "
        "(store = \"...\"), or undo the change",
        path, difference);
  }
  database_.prepare("insert into sessions (started_at, seen_at) values (?, ?)").bind(now_seconds()).bind(now_seconds()).run();
  session_ = database_.last_row();
  transaction.commit();
}

StudyStore::StudyStore(const std::string& path) : database_(path, Database::Use::read) { check_format(); }

void StudyStore::make(const std::string& identity, const Beginning& beginning) {
  database_.execute(kTables);
  const std::pair<const char*, std::string> rows[] = {{"format", kFormat},
                                                      {"id", new_id()},
                                                      {"identity", identity},
                                                      {"limit_bytes", fmt::format("{}", beginning.limit_bytes)}};
  for (const auto& [name, value] : rows) {
    database_.prepare("insert into study values (?, ?)").bind(std::string(name)).bind(value).run();
  }
  for (const search::EarlierTrial& trial : beginning.earlier) {
    database_.prepare("insert into earlier values (?, ?, ?)")
        .bind(trial.point)
        .bind(trial.log_cost)
        .bind(trial.log_peak)
        .run();
  }
  for (TrialRecord trial : beginning.known) {
    insert_trial(trial.point, trial.predicted_costs, trial.predicted_bytes, trial.inherited);
    trial.number = database_.last_row();
    update_trial(trial);
  }
}

std::string StudyStore::value_of(const char* name) {
  Statement statement = database_.prepare("select value from study where name = ?");
  statement.bind(std::string(name));
  return statement.step() ? statement.text(0) : "";
}

void StudyStore::check_format() {
  if (const std::string format = value_of("format"); format != kFormat) {
    throw InputError("{}: expected a study of format {}, found format '{}'; give another `store`", path(), kFormat, format);
  }
  id_ = value_of("id");
}

std::string StudyStore::identity() { return value_of("identity"); }

double StudyStore::limit_bytes() { return std::strtod(value_of("limit_bytes").c_str(), nullptr); }

std::vector<search::EarlierTrial> StudyStore::earlier() {
  std::vector<search::EarlierTrial> all;
  Statement row = database_.prepare("select point, log_cost, log_peak from earlier order by rowid");
  while (row.step()) all.push_back({row.text(0), row.optional_number(1), row.optional_number(2)});
  return all;
}

std::vector<TrialRecord> StudyStore::trials() {
  std::vector<TrialRecord> all;
  Statement row = database_.prepare(
      "select number, point, predicted_costs, predicted_bytes, asked_at, place, ended_at, outcome, costs, peak_bytes, "
      "missing_bytes, message, inherited from trials order by number");
  while (row.step()) {
    TrialRecord trial;
    trial.number = row.integer(0);
    trial.point = row.text(1);
    trial.predicted_costs = list_of(row.text(2), path());
    trial.predicted_bytes = row.number(3);
    trial.asked_at = row.number(4);
    if (!row.is_null(5)) {
      trial.place = row.integer(5);
      trial.ended_at = row.number(6);
      trial.outcome = search::parse_outcome(row.text(7));
      trial.costs = list_of(row.text(8), path());
      trial.peak_bytes = row.number(9);
      trial.missing_bytes = row.number(10);
      trial.message = row.text(11);
    }
    trial.inherited = row.text(12);
    all.push_back(std::move(trial));
  }
  return all;
}

std::vector<RunRecord> StudyStore::runs() {
  std::vector<RunRecord> all;
  Statement row = database_.prepare(
      "select id, trial, purpose, round, nodes, started_at, handle, ended_at, outcome, step_seconds, dropped, "
      "peak_bytes, missing_bytes, watts, message, log_tail from runs order by id");
  while (row.step()) {
    RunRecord run;
    run.id = row.integer(0);
    run.trial = row.integer(1);
    run.purpose = row.text(2) == "confirm" ? Purpose::confirm : Purpose::search;
    run.round = row.integer(3);
    run.nodes = row.integer(4);
    run.started_at = row.number(5);
    run.handle = row.text(6);
    run.ended_at = row.optional_number(7);
    if (!row.is_null(8)) run.outcome = search::parse_outcome(row.text(8));
    run.step_seconds = list_of(row.text(9), path());
    run.dropped = row.integer(10);
    run.peak_bytes = row.number(11);
    run.missing_bytes = row.number(12);
    run.watts = row.number(13);
    run.message = row.text(14);
    run.log_tail = row.text(15);
    all.push_back(std::move(run));
  }
  return all;
}

double StudyStore::active_seconds() {
  Statement sum = database_.prepare("select coalesce(sum(seen_at - started_at), 0) from sessions");
  return sum.step() ? sum.number(0) : 0;
}

double StudyStore::node_seconds() {
  Statement sum = database_.prepare("select coalesce(sum(nodes * (ended_at - started_at)), 0) from runs");
  return sum.step() ? sum.number(0) : 0;
}

Started StudyStore::begin_trial(const std::string& point, const std::vector<double>& predicted_costs,
                                double predicted_bytes, int64_t nodes) {
  Transaction transaction(database_);
  insert_trial(point, predicted_costs, predicted_bytes);
  Started started{.trial = database_.last_row()};
  started.run = insert_run(started.trial, Purpose::search, 0, nodes);
  seen();
  transaction.commit();
  return started;
}

void StudyStore::insert_trial(const std::string& point, const std::vector<double>& costs, double bytes,
                              const std::string& inherited) {
  database_
      .prepare(
          "insert into trials (number, point, predicted_costs, predicted_bytes, asked_at, inherited) "
          "values ((select coalesce(max(number), 0) + 1 from trials), ?, ?, ?, ?, ?)")
      .bind(point)
      .bind(list_text(costs))
      .bind(bytes)
      .bind(now_seconds())
      .bind(inherited)
      .run();
}

int64_t StudyStore::insert_run(int64_t trial, Purpose purpose, int64_t round, int64_t nodes) {
  database_.prepare("insert into runs (trial, purpose, round, nodes, started_at) values (?, ?, ?, ?, ?)")
      .bind(trial)
      .bind(text_of(purpose))
      .bind(round)
      .bind(nodes)
      .bind(now_seconds())
      .run();
  return database_.last_row();
}

int64_t StudyStore::begin_run(int64_t trial, Purpose purpose, int64_t round, int64_t nodes) {
  Transaction transaction(database_);
  const int64_t run = insert_run(trial, purpose, round, nodes);
  seen();
  transaction.commit();
  return run;
}

void StudyStore::set_handle(int64_t run, const std::string& handle) {
  Transaction transaction(database_);
  database_.prepare("update runs set handle = ? where id = ?").bind(handle).bind(run).run();
  transaction.commit();
}

void StudyStore::update_run(const RunRecord& run) {
  const std::optional<std::string> outcome =
      run.outcome ? std::optional<std::string>(search::to_string(*run.outcome)) : std::nullopt;
  database_
      .prepare(
          "update runs set ended_at = ?, outcome = ?, step_seconds = ?, dropped = ?, peak_bytes = ?, "
          "missing_bytes = ?, watts = ?, message = ?, log_tail = ? where id = ? and ended_at is null")
      .bind(run.ended_at)
      .bind(outcome)
      .bind(list_text(run.step_seconds))
      .bind(run.dropped)
      .bind(run.peak_bytes)
      .bind(run.missing_bytes)
      .bind(run.watts)
      .bind(run.message)
      .bind(run.log_tail)
      .bind(run.id)
      .run();
}

int64_t StudyStore::update_trial(const TrialRecord& trial) {
  database_
      .prepare(
          "update trials set place = (select coalesce(max(place), 0) + 1 from trials), ended_at = ?, outcome = ?, "
          "costs = ?, peak_bytes = ?, missing_bytes = ?, message = ? where number = ? and place is null")
      .bind(now_seconds())
      .bind(search::to_string(trial.outcome))
      .bind(list_text(trial.costs))
      .bind(trial.peak_bytes)
      .bind(trial.missing_bytes)
      .bind(trial.message)
      .bind(trial.number)
      .run();
  Statement place = database_.prepare("select place from trials where number = ?");
  place.bind(trial.number);
  RIDGELINE_ASSERT(place.step() && !place.is_null(0));
  return place.integer(0);
}

void StudyStore::end_run(const RunRecord& run) {
  Transaction transaction(database_);
  update_run(run);
  seen();
  transaction.commit();
}

int64_t StudyStore::end_trial(const RunRecord& run, const TrialRecord& trial) {
  Transaction transaction(database_);
  update_run(run);
  const int64_t place = update_trial(trial);
  seen();
  transaction.commit();
  return place;
}

int64_t StudyStore::record_trial(const TrialRecord& trial) {
  Transaction transaction(database_);
  insert_trial(trial.point, trial.predicted_costs, trial.predicted_bytes);
  TrialRecord numbered = trial;
  numbered.number = database_.last_row();
  update_trial(numbered);
  seen();
  transaction.commit();
  return numbered.number;
}

void StudyStore::seen() {
  database_.prepare("update sessions set seen_at = ? where id = ?").bind(now_seconds()).bind(session_).run();
}

}  // namespace ridgeline::study
